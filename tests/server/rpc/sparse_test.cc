// Tests of the sparse vectors over the vocabulary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace sparse_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kE = 32, kWords = 100;

// "tiny" with a head of a masked language model.
ServedModels Splade() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.vocabulary_head = {.width = 16};
  return ModelOf("splade", model);
}

TestServerOptions Serving(bool in_slices = false) {
  TestServerOptions options;
  options.models = Splade();
  if (in_slices) options.limits.max_batch_seconds = absl::Nanoseconds(1);
  return options;
}

using Dense = std::vector<std::vector<float>>;

// The vectors with their zeros. Fails the test if they are unsound.
Dense ToDense(const v1::SparseVectors& sparse) {
  Dense vectors;
  const std::vector<float> weights = ToFloats(sparse.weights());
  EXPECT_EQ(sparse.indices().dtype(), v1::INT32);
  EXPECT_THAT(sparse.indices().shape(), ElementsAre(weights.size()));
  EXPECT_THAT(sparse.weights().shape(), ElementsAre(weights.size()));
  EXPECT_THAT(sparse.indices().data(), SizeIs(4 * weights.size()));
  size_t next = 0;
  for (const int64_t count : sparse.counts()) {
    std::vector<float>& vector = vectors.emplace_back(kWords, 0.0f);
    int32_t before = -1;
    for (int64_t i = 0; i < count; ++i, ++next) {
      int32_t index = 0;
      std::memcpy(&index, sparse.indices().data().data() + 4 * next, 4);
      EXPECT_GT(index, before);
      EXPECT_LT(index, kWords);
      EXPECT_NE(weights[next], 0);
      vector[index] = weights[next];
      before = index;
    }
  }
  EXPECT_EQ(next, weights.size());
  return vectors;
}

class SparseTest : public ::testing::Test {
 protected:
  explicit SparseTest(const TestServerOptions& options = Serving()) : server_(options) {}

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  // Returns what the engine makes of the rows of each sequence.
  Dense Expected(std::vector<float> rows, const std::vector<std::vector<int64_t>>& sequences) {
    EncoderRun run(server_.models().Snapshot()->at("splade")->encoder, 64, 1);
    Dense vectors;
    for (const std::vector<int64_t>& tokens : sequences) {
      std::vector<float> own;
      for (const int64_t token : tokens) {
        own.insert(own.end(), rows.begin() + token * kE, rows.begin() + (token + 1) * kE);
      }
      const int64_t count = static_cast<int64_t>(tokens.size());
      const VocabularySequence place = {0, count, absl::MakeSpan(vectors.emplace_back(kWords))};
      run.WeighVocabulary({own.data(), count, kE, kE}, {&place, 1});
    }
    return vectors;
  }

  TestServer server_;
};

v1::EncodeRequest Request(std::vector<int64_t> shape) {
  int64_t rows = 1;
  for (const int64_t dimension : shape) rows *= dimension;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows; ++i) ids.push_back((i * 37 + 11) % kWords);
  v1::EncodeRequest request;
  *request.mutable_token_ids() = IntegerTensor(std::move(shape), ids, v1::INT32);
  request.set_return_sparse(true);
  return request;
}

TEST_F(SparseTest, AreThoseOfTheHeadOfEachSequence) {
  const v1::EncodeResponse response = Call(Request({2, 3}));
  EXPECT_EQ(ToDense(response.sparse()),
            Expected(ToFloats(response.hidden_states()), {{0, 1, 2}, {3, 4, 5}}));
  EXPECT_THAT(response.sparse().weights().data(), SizeIs(::testing::Gt(20u)));
}

TEST_F(SparseTest, ArePaddedOrPackedAlike) {
  v1::EncodeRequest masked = Request({2, 4});
  *masked.mutable_attention_mask() = IntegerTensor({2, 4}, {0, 1, 1, 1, 1, 0, 1, 0}, v1::INT32);
  const v1::EncodeResponse response = Call(masked);
  EXPECT_EQ(ToDense(response.sparse()),
            Expected(ToFloats(response.hidden_states()), {{1, 2, 3}, {4, 6}}));

  v1::EncodeRequest packed = Request({7});
  packed.add_lengths(5);
  packed.add_lengths(2);
  const v1::EncodeResponse of_packed = Call(packed);
  EXPECT_EQ(ToDense(of_packed.sparse()),
            Expected(ToFloats(of_packed.hidden_states()), {{0, 1, 2, 3, 4}, {5, 6}}));

  v1::EncodeRequest sequence_first = Request({3, 2});
  sequence_first.set_layout(v1::SEQUENCE_FIRST);
  const v1::EncodeResponse turned = Call(sequence_first);
  EXPECT_EQ(ToDense(turned.sparse()),
            Expected(ToFloats(turned.hidden_states()), {{0, 2, 4}, {1, 3, 5}}));
}

TEST_F(SparseTest, NeedNoHiddenStates) {
  v1::EncodeRequest request = Request({1, 9});
  const v1::EncodeResponse with = Call(request);
  request.set_omit_hidden_states(true);
  const v1::EncodeResponse alone = Call(request);
  EXPECT_FALSE(alone.has_hidden_states());
  EXPECT_EQ(ToDense(alone.sparse()), ToDense(with.sparse()));
  request.set_return_pooled(true);
  request.set_pooling(v1::FIRST_TOKEN);
  EXPECT_EQ(ToDense(Call(request).sparse()), ToDense(with.sparse()));
}

TEST_F(SparseTest, ComeInAStreamToo) {
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  v1::EncodeStreamRequest item;
  item.set_id(5);
  *item.mutable_request() = Request({2, 3});
  stream->Write(item);
  stream->WritesDone();
  v1::EncodeStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(ToDense(response.response().sparse()), ToDense(Call(Request({2, 3})).sparse()));
}

TEST_F(SparseTest, HaveTheOutputType) {
  v1::EncodeRequest request = Request({1, 2});
  const v1::EncodeResponse exact = Call(request);
  request.set_output_dtype(v1::FLOAT16);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(response.sparse().weights().dtype(), v1::FLOAT16);
  EXPECT_EQ(response.sparse().indices().data(), exact.sparse().indices().data());
  EXPECT_THAT(
      ToFloats(response.sparse().weights()),
      ::testing::Pointwise(::testing::FloatNear(2e-3f), ToFloats(exact.sparse().weights())));
}

TEST_F(SparseTest, EverythingMaskedHasNoWeights) {
  v1::EncodeRequest request = Request({1, 2});
  request.add_lengths(0);
  const v1::EncodeResponse response = Call(request);
  EXPECT_THAT(response.sparse().counts(), ElementsAre(0));
  EXPECT_THAT(response.sparse().indices().shape(), ElementsAre(0));
  EXPECT_THAT(response.sparse().weights().shape(), ElementsAre(0));
}

TEST_F(SparseTest, AreNotThereUnlessAsked) {
  v1::EncodeRequest request = Request({1, 2});
  request.set_return_sparse(false);
  EXPECT_FALSE(Call(request).has_sparse());
}

TEST_F(SparseTest, TheModelTellsTheirWidth) {
  grpc::ClientContext context;
  v1::GetModelResponse response;
  ASSERT_TRUE(server_.stub().GetModel(&context, {}, &response).ok());
  EXPECT_EQ(response.sparse_width(), kWords);
  std::vector<std::string> stages;
  for (const v1::StageCost& cost : response.stage_costs()) stages.push_back(cost.stage());
  EXPECT_THAT(stages, AllOf(::testing::Contains("vocabulary_head.dense"),
                            ::testing::Contains("vocabulary_head.output")));
}

class SlicedSparseTest : public SparseTest {
 protected:
  SlicedSparseTest() : SparseTest(Serving(/*in_slices=*/true)) {}
};

TEST_F(SlicedSparseTest, AreTheSame) {
  v1::EncodeRequest request = Request({3, 5});
  for (const int64_t length : {5, 2, 4}) request.add_lengths(length);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(server_.gate().passed(), 3);
  EXPECT_EQ(ToDense(response.sparse()), Expected(ToFloats(response.hidden_states()),
                                                 {{0, 1, 2, 3, 4}, {5, 6}, {10, 11, 12, 13}}));
}

// 200 zeros less would be 1 KiB less: the limit is about the worst case.
TEST(SparseLimitTest, AnAnswerCountsAsIfNoWeightWereZero) {
  TestServerOptions options = Serving();
  options.limits.max_answer_bytes = 2000;
  TestServer server(options);
  v1::EncodeRequest request = Request({2, 1});
  request.set_omit_hidden_states(true);
  v1::EncodeResponse response;
  EXPECT_TRUE(server.Encode(request, &response).ok());
  *request.mutable_token_ids() = IntegerTensor({3, 1}, {1, 2, 3}, v1::INT32);
  const grpc::Status status = server.Encode(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "the response would take 2767 bytes; the server allows 2000 (--max-answer-bytes)");
}

}  // namespace sparse_test
}  // namespace attendant::server
