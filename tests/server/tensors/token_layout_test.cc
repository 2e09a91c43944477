#include "server/tensors/token_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace token_layout_test {

using ::testing::ElementsAre;

// A mask as it arrives, which keeps its head and data alive.
class Mask {
 public:
  Mask(std::vector<int64_t> shape, const std::vector<int64_t>& values, v1::DataType dtype)
      : head_(IntegerTensor(std::move(shape), values, dtype)) {
    auto slices = std::make_shared<MessageSlices>();
    slices->emplace_back(head_.data());
    const int64_t size = static_cast<int64_t>(head_.data().size());
    data_ = Payload(std::move(slices), 0, size);
  }

  WireTensor wire() const { return {"attention_mask", head_, &data_}; }

 private:
  v1::Tensor head_;
  Payload data_;
};

absl::StatusOr<TokenLayout> LayOut(std::vector<int64_t> shape, std::vector<int64_t> lengths,
                                   std::optional<WireTensor> mask = std::nullopt) {
  return LayOutTokens("hidden_states", shape,
                      {.lengths = lengths, .attention_mask = mask, .max_tokens = 100});
}

absl::StatusOr<TokenLayout> LayOutSequenceFirst(std::vector<int64_t> shape,
                                                std::vector<int64_t> lengths,
                                                std::optional<WireTensor> mask = std::nullopt) {
  return LayOutTokens("hidden_states", shape,
                      {.lengths = lengths,
                       .attention_mask = mask,
                       .sequence_first = true,
                       .max_tokens = 100});
}

std::vector<std::pair<int64_t, int64_t>> Runs(const TokenLayout& layout) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (const RowRun& run : layout.runs) runs.emplace_back(run.first, run.count);
  return runs;
}

using Stretch = std::pair<int64_t, int64_t>;

TEST(TokenLayoutTest, KeepsEverythingWithoutMaskAndLengths) {
  const auto layout = LayOut({2, 3}, {});
  ASSERT_TRUE(layout.ok());
  EXPECT_FALSE(layout->packed);
  EXPECT_TRUE(layout->leading);
  EXPECT_EQ(layout->sequences, 2);
  EXPECT_EQ(layout->padded_length, 3);
  EXPECT_EQ(layout->rows, 6);
  EXPECT_EQ(layout->tokens(), 6);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 3, 6));
  EXPECT_THAT(layout->positions, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Runs(*layout), ElementsAre(Stretch(0, 6)));
}

TEST(TokenLayoutTest, KeepsTheFirstLengthTokens) {
  const auto layout = LayOut({3, 4}, {2, 0, 4});
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->leading);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 2, 2, 6));
  EXPECT_THAT(Runs(*layout), ElementsAre(Stretch(0, 2), Stretch(8, 4)));
  EXPECT_EQ(layout->length(1), 0);
  EXPECT_TRUE(layout->positions_of(1).empty());
}

TEST(TokenLayoutTest, KeepsRangesOfSequences) {
  const Mask mask({2, 4}, {0, 1, 1, 1, 1, 1, 1, 0}, v1::INT32);
  const auto all = LayOut({2, 4}, {}, mask.wire());
  ASSERT_TRUE(all.ok());
  const TokenLayout layout = WithRangesKept(*all, [](int64_t sequence) {
    return sequence == 0 ? TokenRange{1, 2} : TokenRange{0, 1};
  });
  EXPECT_EQ(layout.rows, 8);
  EXPECT_EQ(layout.padded_length, 4);
  EXPECT_FALSE(layout.leading);
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 2, 3));
  EXPECT_THAT(layout.positions, ElementsAre(2, 3, 0));
  EXPECT_THAT(Runs(layout), ElementsAre(Stretch(2, 3)));

  const auto packed = LayOut({5}, {3, 2});
  ASSERT_TRUE(packed.ok());
  const TokenLayout last = WithRangesKept(*packed, [&](int64_t sequence) {
    return TokenRange{packed->length(sequence) - 1, 1};
  });
  EXPECT_TRUE(last.packed);
  EXPECT_EQ(last.rows, 5);
  EXPECT_THAT(last.positions, ElementsAre(2, 1));
  EXPECT_THAT(Runs(last), ElementsAre(Stretch(2, 1), Stretch(4, 1)));
}

TEST(TokenLayoutTest, MakesRoomBeforeEachSequence) {
  const Mask mask({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1}, v1::INT32);
  const auto features = LayOut({3, 3}, {}, mask.wire());
  ASSERT_TRUE(features.ok());
  const TokenLayout layout = WithRowsBefore(*features, 2);
  EXPECT_EQ(layout.rows, 15);
  EXPECT_EQ(layout.padded_length, 5);
  EXPECT_FALSE(layout.leading);
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 4, 4, 9));
  EXPECT_THAT(layout.positions, ElementsAre(0, 1, 2, 4, 0, 1, 2, 3, 4));
  EXPECT_THAT(Runs(layout), ElementsAre(Stretch(0, 3), Stretch(4, 1), Stretch(10, 5)));
}

TEST(TokenLayoutTest, MakesRoomInPackedRows) {
  const auto features = LayOut({5}, {2, 0, 3});
  ASSERT_TRUE(features.ok());
  const TokenLayout layout = WithRowsBefore(*features, 1);
  EXPECT_TRUE(layout.packed);
  EXPECT_TRUE(layout.leading);
  EXPECT_EQ(layout.rows, 7);
  EXPECT_EQ(layout.padded_length, 4);
  EXPECT_THAT(layout.cu_seqlens, ElementsAre(0, 3, 3, 7));
  EXPECT_THAT(Runs(layout), ElementsAre(Stretch(0, 7)));
}

TEST(TokenLayoutTest, TakesAnyMask) {
  // A prefix, padding on the left, a hole, and no kept token.
  const Mask mask({4, 3}, {1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0}, v1::INT32);
  const auto layout = LayOut({4, 3}, {}, mask.wire());
  ASSERT_TRUE(layout.ok());
  EXPECT_FALSE(layout->leading);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 2, 4, 6, 6));
  EXPECT_THAT(layout->positions, ElementsAre(0, 1, 1, 2, 0, 2));
  EXPECT_THAT(Runs(*layout), ElementsAre(Stretch(0, 2), Stretch(4, 3), Stretch(8, 1)));
}

TEST(TokenLayoutTest, NonZeroKeepsInEveryType) {
  for (v1::DataType dtype : {v1::BOOL, v1::INT8, v1::UINT8, v1::INT16, v1::UINT16, v1::INT32,
                             v1::UINT32, v1::INT64, v1::UINT64}) {
    const Mask mask({1, 4}, {0, 1, -1, 2}, dtype);
    const auto layout = LayOut({1, 4}, {}, mask.wire());
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_THAT(layout->positions, ElementsAre(1, 2, 3)) << v1::DataType_Name(dtype);
  }
}

TEST(TokenLayoutTest, PackedRowsAreWhereTheyAre) {
  const auto layout = LayOut({5}, {2, 0, 3});
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->packed);
  EXPECT_EQ(layout->sequences, 3);
  EXPECT_EQ(layout->padded_length, 3);
  EXPECT_EQ(layout->rows, 5);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(layout->positions, ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(Runs(*layout), ElementsAre(Stretch(0, 5)));
}

TEST(TokenLayoutTest, SequencesFirstAreAcrossTheRows) {
  const auto layout = LayOutSequenceFirst({3, 2}, {});
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->sequence_first);
  EXPECT_TRUE(layout->leading);
  EXPECT_EQ(layout->sequences, 2);
  EXPECT_EQ(layout->padded_length, 3);
  EXPECT_EQ(layout->rows, 6);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 3, 6));
  EXPECT_THAT(layout->positions, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Runs(*layout), ElementsAre(Stretch(0, 1), Stretch(2, 1), Stretch(4, 1), Stretch(1, 1),
                                         Stretch(3, 1), Stretch(5, 1)));
  EXPECT_THAT(TokensOfRows(*layout), ElementsAre(0, 3, 1, 4, 2, 5));

  // With one sequence or one place, the rows are in the order of batch first.
  EXPECT_THAT(Runs(*LayOutSequenceFirst({4, 1}, {})), ElementsAre(Stretch(0, 4)));
  EXPECT_THAT(Runs(*LayOutSequenceFirst({1, 4}, {1, 1, 0, 1})),
              ElementsAre(Stretch(0, 2), Stretch(3, 1)));
}

TEST(TokenLayoutTest, SequencesFirstTakeAnyMask) {
  const Mask mask({3, 4}, {0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1}, v1::INT32);
  const auto layout = LayOutSequenceFirst({4, 3}, {}, mask.wire());
  ASSERT_TRUE(layout.ok());
  EXPECT_FALSE(layout->leading);
  EXPECT_THAT(layout->cu_seqlens, ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(layout->positions, ElementsAre(1, 2, 0, 2, 3));
  EXPECT_THAT(TokensOfRows(*layout), ElementsAre(-1, -1, 2, 0, -1, -1, 1, -1, 3, -1, -1, 4));
  const int64_t rows[] = {11, 0, 3};
  EXPECT_THAT(TokensOfRows(*layout, rows), ElementsAre(4, -1, 0));

  const TokenLayout longer = WithRowsBefore(*layout, 1);
  EXPECT_TRUE(longer.sequence_first);
  EXPECT_EQ(longer.rows, 15);
  EXPECT_THAT(longer.positions, ElementsAre(0, 2, 3, 0, 1, 3, 4));
  EXPECT_THAT(TokensOfRows(longer),
              ElementsAre(0, -1, 3, -1, -1, 4, 1, -1, -1, 2, -1, 5, -1, -1, 6));

  const TokenLayout shorter = WithRangesKept(*layout, [&](int64_t sequence) {
    return TokenRange{0, layout->length(sequence) / 2};
  });
  EXPECT_TRUE(shorter.sequence_first);
  EXPECT_EQ(shorter.rows, 12);
  EXPECT_THAT(shorter.positions, ElementsAre(1, 0));
  EXPECT_THAT(TokensOfRows(shorter), ElementsAre(-1, -1, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1));
}

TEST(TokenLayoutTest, PackedRowsHaveNoOtherOrder) {
  const auto layout = LayOutSequenceFirst({5}, {2, 3});
  EXPECT_EQ(layout.status(),
            absl::InvalidArgumentError(
                "layout: expected BATCH_FIRST with packed hidden_states; got SEQUENCE_FIRST"));
}

TEST(TokenLayoutTest, RefusesWhatDoesNotFit) {
  const Mask mask({1, 4}, {1, 1, 1, 1}, v1::INT64);
  const Mask wide({1, 5}, {1, 1, 1, 1, 1}, v1::INT64);
  struct Case {
    std::vector<int64_t> shape;
    std::vector<int64_t> lengths;
    std::optional<WireTensor> mask;
    std::string message;
  };
  const Case cases[] = {
      {{11, 10},
       {},
       {},
       "hidden_states.shape: expected at most 100 tokens (--max-request-tokens); got [11, 10]"},
      {{int64_t{1} << 40, int64_t{1} << 40},
       {},
       {},
       "hidden_states.shape: expected at most 100 tokens (--max-request-tokens); got "
       "[1099511627776, 1099511627776]"},
      {{2, 4}, {1}, {}, "lengths: expected B = 2 numbers; got 1"},
      {{2, 4}, {1, 5}, {}, "lengths[1]: expected 0..4; got 5"},
      {{2, 4}, {-1, 5}, {}, "lengths[0]: expected 0..4; got -1"},
      {{1, 4},
       {2},
       mask.wire(),
       "attention_mask: cannot be combined with lengths; send one of them"},
      {{1, 4}, {}, wide.wire(), "attention_mask.shape: expected [B, S] = [1, 4]; got [1, 5]"},
      {{4},
       {4},
       mask.wire(),
       "attention_mask: cannot be combined with packed hidden_states; send lengths"},
      {{4}, {}, {}, "lengths: expected 1..100 numbers with packed hidden_states; got 0"},
      {{4},
       std::vector<int64_t>(101),
       {},
       "lengths: expected 1..100 numbers with packed hidden_states; got 101"},
      {{4}, {1, 2}, {}, "lengths: expected a sum of 4 (the rows of hidden_states); got 3"},
      {{4}, {5}, {}, "lengths[0]: expected 0..4; got 5"},
      {{4}, {INT64_MAX, 5}, {}, "lengths[0]: expected 0..4; got 9223372036854775807"},
  };
  for (const Case& each : cases) {
    const auto layout = LayOut(each.shape, each.lengths, each.mask);
    EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(layout.status().message(), each.message);
  }
}

TEST(SequencesAtTest, KeepTheRowsOfTheWhole) {
  TokenLayout packed;
  packed.packed = true;
  packed.sequences = 3;
  packed.padded_length = 4;
  packed.rows = 9;
  packed.cu_seqlens = {0, 3, 4, 8};
  packed.positions = {0, 1, 2, 0, 0, 1, 2, 3};
  packed.runs = {{0, 5}, {6, 3}};  // a run may have tokens of several sequences
  const TokenLayout part = SequencesAt(packed, {1, 2});
  EXPECT_EQ(part.sequences, 2);
  EXPECT_EQ(part.cu_seqlens, (std::vector<int32_t>{0, 1, 5}));
  EXPECT_EQ(part.positions, (std::vector<int32_t>{0, 0, 1, 2, 3}));
  ASSERT_EQ(part.runs.size(), 2u);
  EXPECT_EQ(part.runs[0].first, 3);
  EXPECT_EQ(part.runs[0].count, 2);
  EXPECT_EQ(part.runs[1].first, 6);
  EXPECT_EQ(part.runs[1].count, 3);
  EXPECT_TRUE(SequencesAt(packed, {0, 1, 2}).cu_seqlens == packed.cu_seqlens);
}

TEST(SequencesAtTest, AreThoseSequencesOneAfterTheOther) {
  std::vector<TokenLayout> layouts;
  const std::vector<int64_t> lengths = {2, 0, 3, 1};
  layouts.push_back(*LayOutTokens("ids", {6}, {.lengths = lengths, .max_tokens = 99}));
  layouts.push_back(*LayOutTokens("ids", {4, 3}, {.lengths = lengths, .max_tokens = 99}));
  layouts.push_back(
      *LayOutTokens("ids", {3, 4},
                    {.lengths = lengths, .sequence_first = true, .max_tokens = 99}));
  for (const TokenLayout& layout : layouts) {
    for (int64_t b = 0; b < layout.sequences; ++b) {
      const TokenLayout one = SequencesAt(layout, {b});
      const absl::Span<const int32_t> positions = layout.positions_of(b);
      const std::vector<int64_t> all = RowsOfTokens(layout);
      const int32_t first = layout.cu_seqlens[b], end = layout.cu_seqlens[b + 1];
      EXPECT_EQ(one.sequences, 1);
      EXPECT_EQ(one.rows, layout.rows);
      EXPECT_EQ(one.packed, layout.packed);
      EXPECT_EQ(one.sequence_first, layout.sequence_first);
      EXPECT_EQ(one.cu_seqlens, (std::vector<int32_t>{0, end - first}));
      EXPECT_EQ(one.positions, std::vector<int32_t>(positions.begin(), positions.end()));
      EXPECT_EQ(RowsOfTokens(one), std::vector<int64_t>(all.begin() + first, all.begin() + end));
    }
    const TokenLayout two = SequencesAt(layout, {0, 2});
    EXPECT_EQ(two.cu_seqlens, (std::vector<int32_t>{0, 2, 5}));
    EXPECT_EQ(two.positions, (std::vector<int32_t>{0, 1, 0, 1, 2}));
    std::vector<int64_t> rows = RowsOfTokens(SequencesAt(layout, {0}));
    for (const int64_t row : RowsOfTokens(SequencesAt(layout, {2}))) rows.push_back(row);
    EXPECT_EQ(RowsOfTokens(two), rows);
  }
}

}  // namespace token_layout_test
}  // namespace attendant::server
