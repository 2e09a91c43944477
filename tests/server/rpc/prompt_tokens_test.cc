// Tests of pooled vectors without the tokens of prompts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace prompt_tokens_test {

using ::testing::Each;

constexpr int64_t kE = 32;

// "tiny", which is pooled with prompts, and "prompted", which is pooled without them.
TestServerOptions Serving() {
  TestServerOptions options;
  options.models = TestModels();
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kMean}, .excludes_prompt = true};
  options.models.merge(ModelOf("prompted", model));
  return options;
}

class PromptTokensTest : public ::testing::Test {
 protected:
  static v1::EncodeRequest Request(const std::string& model) {
    return TwoSequences(model, {11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 0, 0});
  }

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  // Expects that the vector of a sequence is the mean of these rows of the request.
  static void ExpectMean(const v1::EncodeResponse& response, int64_t sequence, int64_t first,
                         int64_t count) {
    const std::vector<float> rows = ToFloats(response.hidden_states());
    const std::vector<float> pooled = ToFloats(response.pooled());
    for (int64_t e = 0; e < kE; ++e) {
      double sum = 0;
      for (int64_t r = first; r < first + count; ++r) sum += rows[r * kE + e];
      EXPECT_NEAR(pooled[sequence * kE + e], sum / static_cast<double>(count), 1e-6);
    }
  }

  TestServer server_ = TestServer(Serving());
};

TEST_F(PromptTokensTest, AreLeftOutIfTheModelDoes) {
  v1::EncodeRequest request = Request("prompted");
  ExpectMean(Call(request), 0, 0, 6);
  request.add_prompt_tokens(3);
  const v1::EncodeResponse response = Call(request);
  ExpectMean(response, 0, 3, 3);
  ExpectMean(response, 1, 9, 1);
  // The prompt is attended to all the same.
  EXPECT_EQ(response.hidden_states().data(), Call(Request("prompted")).hidden_states().data());
  request.add_prompt_tokens(0);
  ExpectMean(Call(request), 1, 6, 4);
}

TEST_F(PromptTokensTest, ChangeNothingInOtherModels) {
  v1::EncodeRequest request = Request("tiny");
  const std::string without = Call(request).pooled().data();
  request.add_prompt_tokens(3);
  EXPECT_EQ(Call(request).pooled().data(), without);
}

TEST_F(PromptTokensTest, AreLeftOutOfEachModeThatARequestNames) {
  v1::EncodeRequest request = Request("tiny");
  request.add_prompt_tokens(2);
  request.add_prompt_tokens(9);
  const std::vector<float> rows = ToFloats(Call(request).hidden_states());
  const auto pooled = [&](v1::Pooling pooling) {
    request.set_pooling(pooling);
    std::vector<float> vectors = ToFloats(Call(request).pooled());
    EXPECT_THAT(Rows(vectors, kE, 1, 1), Each(0.0f));  // nothing is left of the second sequence
    vectors.resize(kE);
    return vectors;
  };
  EXPECT_EQ(pooled(v1::FIRST_TOKEN), Rows(rows, kE, 2, 1));
  EXPECT_EQ(pooled(v1::LAST_TOKEN), Rows(rows, kE, 5, 1));
  const std::vector<float> max = pooled(v1::MAX);
  // The weights are those of the positions, prompt included.
  const std::vector<float> weighted = pooled(v1::POSITION_WEIGHTED_MEAN);
  for (int64_t e = 0; e < kE; ++e) {
    const float a = rows[2 * kE + e], b = rows[3 * kE + e], c = rows[4 * kE + e];
    const float d = rows[5 * kE + e];
    EXPECT_EQ(max[e], std::max({a, b, c, d}));
    EXPECT_NEAR(weighted[e], (3 * a + 4 * b + 5 * c + 6 * d) / 18, 1e-6);
  }
  request.set_omit_hidden_states(true);  // only the pooled rows of the last layer are computed
  EXPECT_EQ(pooled(v1::FIRST_TOKEN), Rows(rows, kE, 2, 1));
}

// They are counted in positions from the first kept token on, as sentence-transformers does.
TEST_F(PromptTokensTest, AreCountedFromTheFirstKeptToken) {
  v1::EncodeRequest request = Request("prompted");
  request.clear_lengths();
  *request.mutable_attention_mask() =
      IntegerTensor({2, 6}, {0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0}, v1::INT32);
  request.add_prompt_tokens(2);
  const v1::EncodeResponse response = Call(request);
  ExpectMean(response, 0, 3, 3);
  EXPECT_THAT(Rows(ToFloats(response.pooled()), kE, 1, 1), Each(0.0f));
}

TEST_F(PromptTokensTest, AreCutFirstFromTheLeft) {
  v1::EncodeRequest request;
  request.set_model("prompted");
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 66; ++i) ids.push_back((i * 37 + 11) % 100);
  *request.mutable_token_ids() = IntegerTensor({1, 66}, ids, v1::INT32);  // 64 fit
  request.set_return_pooled(true);
  request.add_prompt_tokens(5);
  request.set_truncation(v1::TRUNCATE_LEFT);
  ExpectMean(Call(request), 0, 5, 61);
  request.set_truncation(v1::TRUNCATE_RIGHT);
  ExpectMean(Call(request), 0, 5, 59);
}

TEST_F(PromptTokensTest, GoWithHiddenStatesToo) {
  v1::EncodeRequest request;
  request.set_model("prompted");
  *request.mutable_hidden_states() = FloatTensor({1, 3, kE}, SomeValues(3 * kE, 1));
  request.set_return_pooled(true);
  request.add_prompt_tokens(1);
  ExpectMean(Call(request), 0, 1, 2);
}

TEST_F(PromptTokensTest, TheModelTellsThatItLeavesThemOut) {
  for (const std::string name : {"tiny", "prompted"}) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(name);
    v1::GetModelResponse response;
    ASSERT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
    EXPECT_EQ(response.pooling().excludes_prompt(), name == "prompted");
  }
}

TEST_F(PromptTokensTest, AreAParameterOfTheOpenInferenceProtocol) {
  InferRequest request = IdsRequest("prompted");
  (*request.mutable_parameters())["prompt_tokens"].set_int64_param(2);
  InferResponse response;
  ASSERT_TRUE(Infer(server_, request, &response).ok());
  v1::EncodeRequest native;
  native.set_model("prompted");
  *native.mutable_token_ids() = IntegerTensor({2, 4}, SomeIds());
  *native.mutable_attention_mask() = IntegerTensor({2, 4}, SomeMask());
  native.set_return_pooled(true);
  const std::string whole = Call(native).pooled().data();
  native.add_prompt_tokens(2);
  EXPECT_EQ(response.raw_output_contents(1), Call(native).pooled().data());
  EXPECT_NE(response.raw_output_contents(1), whole);
}

TEST(SlicedPromptTokensTest, EachSliceHasItsOwn) {
  TestServerOptions options = Serving();
  options.limits.max_batch_seconds = absl::Nanoseconds(1);
  TestServer sliced(std::move(options)), whole(Serving());
  v1::EncodeRequest request;
  request.set_model("prompted");
  *request.mutable_token_ids() =
      IntegerTensor({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, v1::INT32);
  request.set_return_pooled(true);
  for (const int64_t prompt : {3, 0, 2}) request.add_prompt_tokens(prompt);
  v1::EncodeResponse in_slices, at_once;
  ASSERT_TRUE(sliced.Encode(request, &in_slices).ok());
  ASSERT_TRUE(whole.Encode(request, &at_once).ok());
  EXPECT_EQ(sliced.gate().passed(), 3);
  EXPECT_EQ(in_slices.pooled().data(), at_once.pooled().data());
}

}  // namespace prompt_tokens_test
}  // namespace attendant::server
