// Tests of a model like bge-m3: a vector of each text, weights of its tokens and vectors of its
// tokens, all of one pass; and of the scores of late interaction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace several_heads_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 32, kP = 6;

// Of the ids of Request(), 48 weighs nothing.
ServedModels M3() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kFirstToken}, .normalize = true};
  model.lexical_head = {.modes = {},
                        .dense_width = 1,
                        .dense_activation = Activation::kRelu,
                        .excluded_ids = {2, 48}};
  model.token_head = {.modes = {}, .dense_width = kP, .normalize = true, .excludes_first = true};
  return ModelOf("m3", model);
}

TestServerOptions Serving(bool in_slices) {
  TestServerOptions options;
  options.models = M3();
  if (in_slices) options.limits.max_batch_seconds = absl::Nanoseconds(1);
  return options;
}

v1::EncodeRequest Request(int64_t sequences, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < sequences * length; ++i) ids.push_back((i * 37 + 11) % 100);
  v1::EncodeRequest request;
  *request.mutable_token_ids() = IntegerTensor({sequences, length}, ids, v1::INT32);
  return request;
}

class SeveralHeadsTest : public ::testing::Test {
 protected:
  explicit SeveralHeadsTest(bool in_slices = false) : server_(Serving(in_slices)) {}

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  std::string Refusal(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_.Encode(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  TestServer server_;
};

TEST_F(SeveralHeadsTest, OnePassMakesWhatEachAloneMakes) {
  v1::EncodeRequest all = Request(2, 5);
  all.set_omit_hidden_states(true);
  v1::EncodeRequest pooled = all, sparse = all, vectors = all;
  all.set_return_pooled(true);
  all.set_return_sparse(true);
  all.set_return_token_vectors(true);
  pooled.set_return_pooled(true);
  sparse.set_return_sparse(true);
  vectors.set_return_token_vectors(true);
  const v1::EncodeResponse response = Call(all);
  EXPECT_THAT(response.pooled().shape(), ElementsAre(2, kE));
  EXPECT_EQ(response.pooled().data(), Call(pooled).pooled().data());
  EXPECT_EQ(response.sparse().SerializeAsString(), Call(sparse).sparse().SerializeAsString());
  EXPECT_THAT(response.token_vectors().shape(), ElementsAre(2, 5, kP));
  EXPECT_EQ(response.token_vectors().data(), Call(vectors).token_vectors().data());
  EXPECT_EQ(response.execution().batch_requests(), 1);
}

TEST_F(SeveralHeadsTest, AWordWeighsAsMuchAsTheBestOfItsTokens) {
  v1::EncodeRequest request;
  const std::vector<int64_t> ids = {2, 7, 48, 7, 9, 3};
  *request.mutable_token_ids() = IntegerTensor({1, 6}, ids, v1::INT32);
  request.set_return_sparse(true);
  const v1::EncodeResponse response = Call(request);
  EncoderRun run(server_.models().Snapshot()->at("m3")->encoder, 64, 1);
  const std::vector<float> rows = ToFloats(response.hidden_states());
  std::map<int64_t, float> expected;
  run.ApplyHead(
      HeadKind::kLexical, 6,
      [&](int64_t row, absl::Span<float> input) {
        std::copy_n(rows.data() + row * kE, kE, input.data());
      },
      [&](int64_t row, absl::Span<float> output) {
        if (ids[row] == 2 || ids[row] == 48 || output[0] == 0) return;
        expected[ids[row]] = std::max(expected[ids[row]], output[0]);
      });
  std::map<int64_t, float> weights;
  const std::vector<float> values = ToFloats(response.sparse().weights());
  for (size_t i = 0; i < values.size(); ++i) {
    int32_t index = 0;
    std::memcpy(&index, response.sparse().indices().data().data() + 4 * i, 4);
    weights[index] = values[i];
  }
  EXPECT_EQ(weights, expected);
  EXPECT_FALSE(weights.empty());
}

TEST_F(SeveralHeadsTest, TheFirstTokenOfASequenceHasNoVector) {
  v1::EncodeRequest request = Request(2, 4);
  *request.mutable_attention_mask() = IntegerTensor({2, 4}, {0, 1, 1, 1, 1, 0, 1, 0}, v1::INT32);
  request.set_return_token_vectors(true);
  const std::vector<float> vectors = ToFloats(Call(request).token_vectors());
  std::vector<int64_t> with;
  for (int64_t row = 0; row < 8; ++row) {
    const std::vector<float> own = Rows(vectors, kP, row, 1);
    if (std::any_of(own.begin(), own.end(), [](float x) { return x != 0; })) with.push_back(row);
  }
  EXPECT_THAT(with, ElementsAre(2, 3, 6));
}

TEST_F(SeveralHeadsTest, WeightsNeedTheIdsOfTokens) {
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({1, 3, kE}, SomeValues(3 * kE, 1));
  request.set_return_sparse(true);
  EXPECT_EQ(Refusal(request),
            "return_sparse: requires token_ids or texts (the model weighs token ids)");
}

// The score of each sequence by the vectors that are returned.
std::vector<double> Scores(const std::vector<float>& query, const v1::EncodeResponse& response,
                           int64_t sequences, int64_t length) {
  const std::vector<float> vectors = ToFloats(response.token_vectors());
  std::vector<double> scores;
  for (int64_t b = 0; b < sequences; ++b) {
    double score = 0;
    for (size_t q = 0; q < query.size(); q += kP) {
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t t = 0; t < length; ++t) {
        const float* vector = vectors.data() + (b * length + t) * kP;
        double product = 0, size = 0;
        for (int64_t j = 0; j < kP; ++j) {
          product += double{query[q + j]} * vector[j];
          size += double{vector[j]} * vector[j];
        }
        if (size > 0) most = std::max(most, product);
      }
      score += most;
    }
    scores.push_back(score);
  }
  return scores;
}

v1::EncodeRequest Scored(int64_t sequences, int64_t length, const std::vector<float>& query) {
  v1::EncodeRequest request = Request(sequences, length);
  request.set_omit_hidden_states(true);
  *request.mutable_query_vectors() =
      FloatTensor({static_cast<int64_t>(query.size()) / kP, kP}, query);
  return request;
}

TEST_F(SeveralHeadsTest, QueryVectorsScoreSequences) {
  const std::vector<float> query = SomeValues(3 * kP, 5);
  v1::EncodeRequest request = Scored(3, 4, query);
  const v1::EncodeResponse alone = Call(request);
  EXPECT_FALSE(alone.has_token_vectors());
  EXPECT_THAT(alone.scores().shape(), ElementsAre(3));
  request.set_return_token_vectors(true);
  const v1::EncodeResponse both = Call(request);
  EXPECT_EQ(alone.scores().data(), both.scores().data());
  const std::vector<double> expected = Scores(query, both, 3, 4);
  for (size_t b = 0; b < 3; ++b) EXPECT_NEAR(ToFloats(both.scores())[b], expected[b], 1e-5);
}

TEST_F(SeveralHeadsTest, VectorsThatAreZerosTakeNoPart) {
  std::vector<float> query = SomeValues(2 * kP, 5);
  const std::string expected = Call(Scored(2, 4, query)).scores().data();
  query.insert(query.begin() + kP, kP, 0.0f);
  EXPECT_EQ(Call(Scored(2, 4, query)).scores().data(), expected);
  // A sequence of its first token alone has no vector.
  EXPECT_THAT(ToFloats(Call(Scored(2, 1, query)).scores()), Each(0.0f));
}

TEST_F(SeveralHeadsTest, QueryVectorsAreChecked) {
  const std::vector<float> query = SomeValues(2 * kP, 5);
  v1::EncodeRequest request = Scored(1, 4, query);
  request.mutable_query_vectors()->set_shape(1, kP + 1);
  EXPECT_EQ(Refusal(request),
            "query_vectors.shape: expected [Q, P] with Q at most 16384 and P = 6; got [2, 7]");
  request.mutable_query_vectors()->clear_shape();
  request.mutable_query_vectors()->add_shape(2 * kP);
  EXPECT_EQ(Refusal(request),
            "query_vectors.shape: expected [Q, P] with Q at most 16384 and P = 6; got [12]");
  request = Scored(1, 4, query);
  *request.mutable_query_vectors() = IntegerTensor({1, kP}, std::vector<int64_t>(kP, 1), v1::INT32);
  EXPECT_EQ(Refusal(request),
            "query_vectors.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT32");
}

TEST(NonfiniteQueryTest, IsRefusedOnlyIfSet) {
  std::vector<float> query = SomeValues(2 * kP, 5);
  query[kP + 3] = std::nanf("");
  v1::EncodeResponse response;
  TestServer lenient(Serving(/*in_slices=*/false));
  EXPECT_TRUE(lenient.Encode(Scored(1, 4, query), &response).ok());
  lenient.ExpectMetrics(::testing::HasSubstr("attendant_nonfinite_requests_total{model=\"m3\"} 1"));
  TestServerOptions options = Serving(/*in_slices=*/false);
  options.limits.nonfinite = NonfinitePolicy::kReject;
  TestServer strict(options);
  const grpc::Status status = strict.Encode(Scored(1, 4, query), &response);
  EXPECT_EQ(status.error_message(), "query_vectors: expected finite numbers; got NaN or infinity");
}

class SlicedHeadsTest : public SeveralHeadsTest {
 protected:
  SlicedHeadsTest() : SeveralHeadsTest(/*in_slices=*/true) {}
};

TEST_F(SlicedHeadsTest, ScoresAreTheSame) {
  v1::EncodeRequest request = Scored(3, 4, SomeValues(3 * kP, 5));
  request.set_return_token_vectors(true);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(server_.gate().passed(), 3);
  const std::vector<double> expected = Scores(SomeValues(3 * kP, 5), response, 3, 4);
  for (size_t b = 0; b < 3; ++b) EXPECT_NEAR(ToFloats(response.scores())[b], expected[b], 1e-5);
}

}  // namespace several_heads_test
}  // namespace attendant::server
