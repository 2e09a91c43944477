#include "client/inspect/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace inspection_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelInfo TwoHeads() {
  ModelInfo model;
  model.set_name("m");
  model.set_layers(3);
  model.mutable_layer()->set_heads(2);
  model.mutable_layer()->set_hidden_size(2);
  return model;
}

// Returns probabilities [B, 2, S, S] with distinct elements, and states [rows, 2].
EncodeResult Answer(uint32_t layer, int64_t sequences, int64_t length,
                    std::vector<int64_t> states_shape) {
  std::vector<float> probabilities(static_cast<size_t>(sequences * 2 * length * length));
  for (size_t i = 0; i < probabilities.size(); ++i) {
    probabilities[i] = static_cast<float>(i) / 128;
  }
  std::vector<float> states(static_cast<size_t>(*ElementCount(states_shape)));
  for (size_t i = 0; i < states.size(); ++i) states[i] = static_cast<float>(i);
  EncodeResult result;
  result.attention_probabilities = {
      {layer, FloatTensor({sequences, 2, length, length}, probabilities)}};
  result.intermediate = {{layer, FloatTensor(std::move(states_shape), states)}};
  result.execution.compute_type = "f32";
  return result;
}

TEST(InspectorTest, NamesTheKeptTokens) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({2, 3}, {7, 8, 9, 10, 11, 12});
  request.attention_mask = Int64Tensor({2, 3}, {1, 0, 1, 1, 1, 0});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  EXPECT_THAT(inspector->inspection().sequences[0].token_texts, IsEmpty());
  ASSERT_TRUE(inspector->NameTokens({{"a", "b", "c"}, {"d", "e"}}).ok());
  EXPECT_THAT(inspector->inspection().sequences[0].token_texts, ElementsAre("a", "c"));
  EXPECT_THAT(inspector->inspection().sequences[1].token_texts, ElementsAre("d", "e"));
}

TEST(InspectorTest, NamesTheRowsThatTheModelAdds) {
  ModelInfo model = TwoHeads();
  model.mutable_front()->set_own_rows(1);
  EncodeRequest request;
  request.features = FloatTensor({1, 2, 1}, {1, 2});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, model, 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->NameTokens({{"left", "right"}}).ok());
  EXPECT_THAT(inspector->inspection().sequences[0].token_texts,
              ElementsAre("prefix 0", "left", "right"));
}

TEST(InspectorTest, RefusesTextsThatAreNotThoseOfTheTokens) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({1, 3}, {7, 8, 9});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  for (const size_t count : {0, 2, 4}) {
    EXPECT_EQ(inspector->NameTokens({std::vector<std::string>(count, "a")}).message(),
              absl::StrCat("sequence 0: expected 3 texts; got ", count));
  }
  EXPECT_EQ(inspector->NameTokens({{"a"}, {"b"}}).message(),
            "expected one line of labels per sequence, 1; got 2");
}

TEST(InspectorTest, TakesTheKeptTokensOfAPaddedRequest) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({2, 3}, {7, 8, 9, 10, 11, 12});
  request.attention_mask = Int64Tensor({2, 3}, {1, 0, 1, 0, 1, 1});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(1, 2, 3, {2, 3, 2})).ok());
  const Inspection& inspection = inspector->inspection();
  ASSERT_EQ(inspection.sequences.size(), 2u);
  const SequenceInspection& second = inspection.sequences[1];
  EXPECT_THAT(inspection.sequences[0].positions, ElementsAre(0, 2));
  EXPECT_THAT(inspection.sequences[0].token_ids, ElementsAre(7, 9));
  EXPECT_THAT(second.positions, ElementsAre(1, 2));
  EXPECT_THAT(second.token_ids, ElementsAre(11, 12));
  EXPECT_FALSE(second.input_uniformity.has_value());
  ASSERT_EQ(second.layers.size(), 1u);
  EXPECT_EQ(second.layers[0].layer, 1u);
  ASSERT_EQ(second.layers[0].heads.size(), 2u);
  // Sequence 1, head 1: elements from 27 on; rows and columns 1 and 2.
  const Matrix expected{{31.0 / 128, 32.0 / 128}, {34.0 / 128, 35.0 / 128}};
  EXPECT_EQ(second.layers[0].heads[1].map, expected);
  EXPECT_DOUBLE_EQ(second.layers[0].heads[1].statistics.confidence, 33.5 / 128);
  EXPECT_DOUBLE_EQ(second.layers[0].token_uniformity, TokenUniformity(Matrix{{8, 9}, {10, 11}}));
}

// Ids are counted over all sequences, without padding.
TEST(InspectorTest, NumbersTheHeadsAsTheCheckpointDoes) {
  ModelInfo model = TwoHeads();
  model.mutable_layer()->set_heads(4);
  v1::PrunedLayer& pruned = *model.add_pruned_layers();
  pruned.set_layer(1);
  pruned.add_heads(0);
  pruned.add_heads(3);
  EncodeRequest request;
  request.token_ids = Int64Tensor({1, 2}, {7, 8});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, model, 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(1, 1, 2, {1, 2, 2})).ok());
  ASSERT_TRUE(inspector->Add(Answer(2, 1, 2, {1, 2, 2})).ok());
  const std::vector<LayerInspection>& layers = inspector->inspection().sequences[0].layers;
  EXPECT_EQ(layers[0].heads[0].number, 0);
  EXPECT_EQ(layers[0].heads[1].number, 3);
  EXPECT_EQ(layers[1].heads[1].number, 1);
}

TEST(InspectorTest, KnowsTheRareIdsOfASequence) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({3, 3}, {7, 8, 7, 7, 9, 8, 5, 5, 6});
  request.attention_mask = Int64Tensor({3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 0});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(0, 3, 3, {3, 3, 2})).ok());
  const std::vector<SequenceInspection>& sequences = inspector->inspection().sequences;
  EXPECT_THAT(sequences[0].rare_ids, ElementsAre(8));
  EXPECT_THAT(sequences[1].rare_ids, ElementsAre(9));
  EXPECT_THAT(sequences[2].rare_ids, IsEmpty());
  // Probabilities ascend, so every query looks most at the last token, whose id is 7 or 8.
  EXPECT_EQ(sequences[0].layers[0].heads[1].statistics.rare_share, 0);
  EXPECT_EQ(sequences[1].layers[0].heads[1].statistics.rare_share, 0);
  EXPECT_FALSE(sequences[2].layers[0].heads[1].statistics.rare_share.has_value());
}

TEST(InspectorTest, TakesPackedRequestsApart) {
  EncodeRequest request;
  request.hidden_states = FloatTensor({3, 2}, std::vector<float>{0, 0, 1, 0, -1, 0});
  request.lengths = {1, 2};
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(0, 2, 2, {3, 2})).ok());
  const Inspection& inspection = inspector->inspection();
  EXPECT_THAT(inspection.sequences[0].positions, ElementsAre(0));
  EXPECT_THAT(inspection.sequences[1].positions, ElementsAre(0, 1));
  EXPECT_THAT(inspection.sequences[1].token_ids, IsEmpty());
  EXPECT_DOUBLE_EQ(inspection.sequences[1].input_uniformity.value(), 1);
  EXPECT_EQ(inspection.sequences[0].layers[0].heads[1].map, (Matrix{{4.0 / 128}}));
  EXPECT_DOUBLE_EQ(inspection.sequences[1].layers[0].token_uniformity,
                   TokenUniformity(Matrix{{2, 3}, {4, 5}}));
}

// The model's own rows come before the features of each sequence that has features.
TEST(InspectorTest, CountsTheModelsOwnRowsOfFeatures) {
  ModelInfo model = TwoHeads();
  model.mutable_front()->set_own_rows(1);
  EncodeRequest padded;
  padded.features = FloatTensor({2, 2, 3}, std::vector<float>(12));
  padded.attention_mask = Int64Tensor({2, 2}, {0, 0, 0, 1});
  absl::StatusOr<Inspector> inspector = Inspector::Create(padded, model, 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(0, 2, 3, {2, 3, 2})).ok());
  EXPECT_THAT(inspector->inspection().sequences[0].positions, IsEmpty());
  const SequenceInspection& second = inspector->inspection().sequences[1];
  EXPECT_THAT(second.positions, ElementsAre(0, 2));
  EXPECT_FALSE(second.input_uniformity.has_value());
  EXPECT_DOUBLE_EQ(second.layers[0].token_uniformity, TokenUniformity(Matrix{{6, 7}, {10, 11}}));
  const Matrix expected{{27.0 / 128, 29.0 / 128}, {33.0 / 128, 35.0 / 128}};
  EXPECT_EQ(second.layers[0].heads[1].map, expected);

  EncodeRequest packed;
  packed.features = FloatTensor({3, 3}, std::vector<float>(9));
  packed.lengths = {0, 1, 2};
  inspector = Inspector::Create(packed, model, 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  ASSERT_TRUE(inspector->Add(Answer(0, 3, 3, {5, 2})).ok());
  const std::vector<SequenceInspection>& sequences = inspector->inspection().sequences;
  EXPECT_THAT(sequences[1].positions, ElementsAre(0, 1));
  EXPECT_THAT(sequences[2].positions, ElementsAre(0, 1, 2));
  EXPECT_DOUBLE_EQ(sequences[2].layers[0].token_uniformity,
                   TokenUniformity(Matrix{{4, 5}, {6, 7}, {8, 9}}));
}

TEST(InspectorTest, LengthsCutAPaddedRequest) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({1, 3}, {7, 8, 9});
  request.lengths = {2};
  const absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok()) << inspector.status();
  EXPECT_THAT(inspector->inspection().sequences[0].positions, ElementsAre(0, 1));
}

TEST(InspectorTest, CountsTheLayersOfAnAnswer) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({1, 10}, std::vector<int64_t>(10));
  const absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok());
  constexpr int64_t kLayer = (2 * 10 * 10 + 10 * 2) * 4;
  constexpr int64_t kBeside = 1 << 16;
  EXPECT_EQ(inspector->LayersThatFit(1024), 1);
  EXPECT_EQ(inspector->LayersThatFit(kBeside + 2 * kLayer - 1), 1);
  EXPECT_EQ(inspector->LayersThatFit(kBeside + 2 * kLayer), 2);
  EXPECT_EQ(inspector->LayersThatFit(int64_t{1} << 40), 3);
}

std::string Refusal(const EncodeRequest& request) {
  const absl::Status status = Inspector::Create(request, TwoHeads(), 128).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(InspectorTest, RefusesOwnRowsThatCannotBe) {
  EncodeRequest request;
  request.features = FloatTensor({1, 1, 1}, std::vector<float>{0});
  for (const int64_t count : {int64_t{-1}, int64_t{1} << 40}) {
    ModelInfo model = TwoHeads();
    model.mutable_front()->set_own_rows(count);
    EXPECT_THAT(Inspector::Create(request, model, 128).status().message(),
                HasSubstr(absl::StrCat("the server reports ", count, " prefix tokens before it")));
  }
}

TEST(InspectorTest, RefusesWhatIsNoRequest) {
  EncodeRequest request;
  EXPECT_THAT(Refusal(request), HasSubstr("it is missing"));
  request.token_ids = Int64Tensor({1, 1, 1}, {7});
  EXPECT_THAT(Refusal(request), HasSubstr("its shape is [1, 1, 1]"));
  request.token_ids = Int64Tensor({3}, {7, 8, 9});
  request.lengths = {2, 2};
  EXPECT_THAT(Refusal(request), HasSubstr("its lengths do not match its tokens"));
  request.lengths = {-1, 2};
  EXPECT_THAT(Refusal(request), HasSubstr("its lengths do not match its tokens"));
  request.lengths = {std::numeric_limits<int64_t>::max(), 2};
  EXPECT_THAT(Refusal(request), HasSubstr("its lengths do not match its tokens"));
  request.lengths = {};
  request.token_ids = Int64Tensor({1, 3}, {7, 8, 9});
  request.attention_mask = Int64Tensor({1, 2}, {1, 1});
  EXPECT_THAT(Refusal(request), HasSubstr("its mask or lengths do not match its sequences"));
  request.attention_mask.reset();
  request.token_ids = Int64Tensor({int64_t{1} << 60, 0}, {});
  EXPECT_THAT(Refusal(request), HasSubstr("no token is kept"));
  request.token_ids = Int64Tensor({1, 3}, {7, 8, 9});
  request.attention_mask = Int64Tensor({1, 3}, {0, 0, 0});
  EXPECT_THAT(Refusal(request), HasSubstr("no token is kept"));
  request.attention_mask.reset();
  request.layout = Layout::kSequenceFirst;
  EXPECT_THAT(Refusal(request), HasSubstr("its layout is sequence-first"));
}

TEST(InspectorTest, RefusesUnsoundAnswers) {
  EncodeRequest request;
  request.token_ids = Int64Tensor({1, 2}, {7, 8});
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, TwoHeads(), 128);
  ASSERT_TRUE(inspector.ok());
  EncodeResult lacking = Answer(1, 1, 2, {1, 2, 2});
  lacking.intermediate.clear();
  EXPECT_EQ(inspector->Add(lacking),
            absl::InternalError("the server's response has no valid hidden states of layer 1"));
  EXPECT_EQ(inspector->Add(Answer(1, 1, 2, {1, 3, 2})),
            absl::InternalError("the server's response has no valid hidden states of layer 1"));
  EXPECT_EQ(
      inspector->Add(Answer(1, 1, 3, {1, 2, 2})),
      absl::InternalError("the server's response has no valid attention probabilities of layer 1"));
}

}  // namespace inspection_test
}  // namespace attendant::client
