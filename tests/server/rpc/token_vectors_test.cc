// Tests of what the checkpoint's head makes of each token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/layers/pooling.h"
#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace token_vectors_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 32, kP = 5;

// "tiny" with a head of two linear layers and a norm between them.
ServedModels Tagging() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.token_head = {.modes = {},
                      .dense_width = 16,
                      .dense_activation = Activation::kGelu,
                      .has_dense_norm = true,
                      .output_width = kP};
  ServedModels models = ModelOf("tagging", model);
  // Ids 48 and 85 are those of the second and the third token of a request below.
  auto selective = std::make_shared<ServedModel>(*models.at("tagging"));
  auto tokenization = std::make_shared<Tokenization>();
  tokenization->selection = {{48, 85}, {"document", "title"}, {11, 22, 48}};
  selective->tokenization = tokenization;
  models["tagging"] = selective;
  return models;
}

TestServerOptions Serving(bool in_slices) {
  TestServerOptions options;
  options.models = Tagging();
  if (in_slices) options.limits.max_batch_seconds = absl::Nanoseconds(1);
  return options;
}

class TokenVectorsTest : public ::testing::Test {
 protected:
  explicit TokenVectorsTest(bool in_slices = false) : server_(Serving(in_slices)) {}

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  // Returns what the engine makes of each of these rows.
  std::vector<float> HeadOf(const std::vector<float>& rows) {
    EncoderRun run(server_.models().Snapshot()->at("tagging")->encoder, 64, 1);
    std::vector<float> vectors(rows.size() / kE * kP);
    run.ApplyHead(
        HeadKind::kTokenHead, static_cast<int64_t>(rows.size()) / kE,
        [&](int64_t row, absl::Span<float> input) {
          std::copy_n(rows.data() + row * kE, kE, input.data());
        },
        [&](int64_t row, absl::Span<float> output) {
          std::copy_n(output.data(), kP, vectors.data() + row * kP);
        });
    return vectors;
  }

  TestServer server_;
};

v1::EncodeRequest Request(std::vector<int64_t> shape) {
  int64_t rows = 1;
  for (const int64_t dimension : shape) rows *= dimension;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows; ++i) ids.push_back((i * 37 + 11) % 100);
  v1::EncodeRequest request;
  *request.mutable_token_ids() = IntegerTensor(std::move(shape), ids, v1::INT32);
  request.set_return_token_vectors(true);
  request.set_task("query");  // which leaves nothing out
  return request;
}

TEST_F(TokenVectorsTest, AreThoseOfTheHeadAtEachToken) {
  const v1::EncodeResponse response = Call(Request({2, 20}));
  EXPECT_THAT(response.token_vectors().shape(), ElementsAre(2, 20, kP));
  EXPECT_EQ(ToFloats(response.token_vectors()), HeadOf(ToFloats(response.hidden_states())));
}

// The ids of its five tokens are 11, 48, 85, 22 and 59.
TEST_F(TokenVectorsTest, AreZerosForTokensThatATaskLeavesOut) {
  const auto left_out = [&](const std::string& task) {
    v1::EncodeRequest request = Request({1, 5});
    request.set_task(task);
    const v1::EncodeResponse response = Call(request);
    const std::vector<float> vectors = ToFloats(response.token_vectors());
    const std::vector<float> expected = HeadOf(ToFloats(response.hidden_states()));
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 5; ++row) {
      const std::vector<float> own = Rows(vectors, kP, row, 1);
      if (own == Rows(expected, kP, row, 1)) continue;
      EXPECT_THAT(own, Each(0.0f));
      rows.push_back(row);
    }
    return rows;
  };
  EXPECT_THAT(left_out("query"), ElementsAre());
  EXPECT_THAT(left_out("title"), ElementsAre(1, 2, 4));
  EXPECT_THAT(left_out("other"), ElementsAre(2, 4));
  EXPECT_EQ(left_out(""), left_out("document"));
}

TEST_F(TokenVectorsTest, ATaskIsAParameterOfTheOpenInferenceProtocol) {
  v1::EncodeRequest native;
  *native.mutable_token_ids() = IntegerTensor({2, 4}, SomeIds());
  *native.mutable_attention_mask() = IntegerTensor({2, 4}, SomeMask());
  native.set_return_token_vectors(true);
  std::vector<std::string> answers;
  for (const std::string task : {"query", "document"}) {
    InferRequest request = IdsRequest("tagging");
    request.add_outputs()->set_name("token_embeddings");
    (*request.mutable_parameters())["task"].set_string_param(task);
    InferResponse response;
    ASSERT_TRUE(Infer(server_, request, &response).ok());
    native.set_task(task);
    answers.push_back(response.raw_output_contents(0));
    EXPECT_EQ(answers.back(), Call(native).token_vectors().data());
  }
  EXPECT_NE(answers[0], answers[1]);
}

TEST_F(TokenVectorsTest, AreThoseOfAllRowsThatHaveNoIds) {
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({1, 3, kE}, SomeValues(3 * kE, 1));
  request.set_return_token_vectors(true);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(ToFloats(response.token_vectors()), HeadOf(ToFloats(response.hidden_states())));
}

TEST_F(TokenVectorsTest, PaddingIsZeros) {
  v1::EncodeRequest request = Request({2, 4});
  *request.mutable_attention_mask() = IntegerTensor({2, 4}, {0, 1, 1, 1, 1, 0, 1, 0}, v1::INT32);
  const v1::EncodeResponse response = Call(request);
  const std::vector<float> vectors = ToFloats(response.token_vectors());
  const std::vector<float> expected = HeadOf(ToFloats(response.hidden_states()));
  for (const int64_t row : {0, 5, 7}) {
    const std::vector<float> own(vectors.begin() + row * kP, vectors.begin() + (row + 1) * kP);
    EXPECT_THAT(own, Each(0.0f)) << row;
  }
  for (const int64_t row : {1, 2, 3, 4, 6}) {
    for (int64_t c = 0; c < kP; ++c) EXPECT_EQ(vectors[row * kP + c], expected[row * kP + c]);
  }
}

TEST_F(TokenVectorsTest, HaveTheLayoutOfTheRequest) {
  v1::EncodeRequest packed = Request({7});
  packed.add_lengths(5);
  packed.add_lengths(2);
  const v1::EncodeResponse response = Call(packed);
  EXPECT_THAT(response.token_vectors().shape(), ElementsAre(7, kP));
  EXPECT_EQ(ToFloats(response.token_vectors()), HeadOf(ToFloats(response.hidden_states())));
  v1::EncodeRequest sequence_first = Request({3, 2});
  sequence_first.set_layout(v1::SEQUENCE_FIRST);
  const v1::EncodeResponse turned = Call(sequence_first);
  EXPECT_THAT(turned.token_vectors().shape(), ElementsAre(3, 2, kP));
  EXPECT_EQ(ToFloats(turned.token_vectors()), HeadOf(ToFloats(turned.hidden_states())));
}

TEST_F(TokenVectorsTest, NeedNoHiddenStates) {
  v1::EncodeRequest request = Request({1, 9});
  const v1::EncodeResponse with = Call(request);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_pooling(v1::FIRST_TOKEN);
  const v1::EncodeResponse without = Call(request);
  EXPECT_FALSE(without.has_hidden_states());
  EXPECT_EQ(without.token_vectors().data(), with.token_vectors().data());
}

TEST_F(TokenVectorsTest, AreScaledToLengthOneIfAsked) {
  v1::EncodeRequest request = Request({1, 6});
  std::vector<float> expected = ToFloats(Call(request).token_vectors());
  for (size_t r = 0; r < 6; ++r) {
    NormalizeToUnitLength(absl::MakeSpan(expected).subspan(r * kP, kP));
  }
  request.set_normalize_token_vectors(true);
  EXPECT_EQ(ToFloats(Call(request).token_vectors()), expected);
}

TEST_F(TokenVectorsTest, HaveTheOutputType) {
  v1::EncodeRequest request = Request({1, 2});
  request.set_output_dtype(v1::BFLOAT16);
  EXPECT_EQ(Call(request).token_vectors().dtype(), v1::BFLOAT16);
}

TEST_F(TokenVectorsTest, EverythingMaskedIsZeros) {
  v1::EncodeRequest request = Request({1, 2});
  request.add_lengths(0);
  EXPECT_THAT(ToFloats(Call(request).token_vectors()), Each(0.0f));
}

TEST_F(TokenVectorsTest, TheModelTellsItsHead) {
  grpc::ClientContext context;
  v1::GetModelResponse response;
  ASSERT_TRUE(server_.stub().GetModel(&context, {}, &response).ok());
  EXPECT_EQ(response.token_head().width(), kP);
  EXPECT_EQ(response.token_head().dense_activation(), "gelu");
  EXPECT_THAT(response.token_head().modes(), ElementsAre());
}

class SlicedTokenVectorsTest : public TokenVectorsTest {
 protected:
  SlicedTokenVectorsTest() : TokenVectorsTest(/*in_slices=*/true) {}
};

TEST_F(SlicedTokenVectorsTest, AreTheSame) {
  v1::EncodeRequest request = Request({3, 5});
  for (const int64_t length : {5, 2, 4}) request.add_lengths(length);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(server_.gate().passed(), 3);
  const std::vector<float> vectors = ToFloats(response.token_vectors());
  std::vector<float> expected = HeadOf(ToFloats(response.hidden_states()));
  for (const int64_t row : {7, 8, 9, 14}) {
    std::fill_n(expected.begin() + row * kP, kP, 0.0f);
  }
  EXPECT_EQ(vectors, expected);
}

}  // namespace token_vectors_test
}  // namespace attendant::server
