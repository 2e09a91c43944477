#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace tokenizer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// "tiny", which has 64 positions, as if its folder said that it is meant for 8 tokens.
TestServerOptions WithTokenizer(int64_t max_answer_bytes) {
  TestServerOptions options;
  options.limits.max_answer_bytes = max_answer_bytes;
  auto model = std::make_shared<ServedModel>("tiny", TestModels().at("tiny")->encoder);
  model->tokenization =
      std::make_shared<const Tokenization>(Tokenization{.tokenizer_json = std::string(1000, 't'),
                                                        .max_sequence_length = 8,
                                                        .lower_case = true,
                                                        .prompts = {{"query", "q: "}},
                                                        .default_prompt = "query",
                                                        .labels = {"good", "bad"},
                                                        .class_scores = ScoreFunction::kSigmoid,
                                                        .rank_scores = ScoreFunction::kPlain,
                                                        .special_tokens = {{"cls", 3}},
                                                        .selection = {{5, 9}, {"document"}, {7}}});
  options.models = {{"tiny", model}, {"bare", TestModels().at("bare")}};
  return options;
}

class TokenizerTest : public ::testing::Test {
 protected:
  explicit TokenizerTest(int64_t max_answer_bytes = int64_t{1} << 20)
      : server_(WithTokenizer(max_answer_bytes)) {}

  grpc::Status Get(const std::string& model, v1::GetTokenizerResponse* response) {
    grpc::ClientContext context;
    v1::GetTokenizerRequest request;
    request.set_model(model);
    return server_.stub().GetTokenizer(&context, request, response);
  }

  v1::EncodeRequest Ids(int64_t count) {
    v1::EncodeRequest request;
    request.set_model("tiny");
    *request.mutable_token_ids() =
        IntegerTensor({1, count}, std::vector<int64_t>(static_cast<size_t>(count), 7), v1::INT32);
    return request;
  }

  TestServer server_;
};

TEST_F(TokenizerTest, IsThatOfTheFolder) {
  v1::GetTokenizerResponse response;
  const grpc::Status status = Get("tiny", &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.tokenizer_json(), std::string(1000, 't'));
  EXPECT_EQ(response.max_sequence_length(), 8);
  EXPECT_TRUE(response.lower_case());
  EXPECT_THAT(response.prompts(), UnorderedElementsAre(Pair("query", "q: ")));
  EXPECT_EQ(response.default_prompt(), "query");
  EXPECT_THAT(response.labels(), ElementsAre("good", "bad"));
  EXPECT_THAT(response.special_ids(), UnorderedElementsAre(Pair("cls", 3)));
  EXPECT_THAT(response.skipped_ids(), ElementsAre(5, 9));
  EXPECT_THAT(response.skip_tasks(), ElementsAre("document"));
  EXPECT_THAT(response.only_ids(), ElementsAre(7));
  EXPECT_EQ(response.class_scores(), v1::SCORES_SIGMOID);
  EXPECT_EQ(response.rank_scores(), v1::SCORES_PLAIN);
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model("tiny");
  v1::GetModelResponse model;
  ASSERT_TRUE(server_.stub().GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.class_scores(), v1::SCORES_SIGMOID);
  EXPECT_EQ(model.rank_scores(), v1::SCORES_PLAIN);
  EXPECT_THAT(model.labels(), ElementsAre("good", "bad"));
  server_.ExpectMetrics(HasSubstr("method=\"GetTokenizer\""));
}

TEST_F(TokenizerTest, SaysWhatIsMissing) {
  v1::GetTokenizerResponse response;
  const grpc::Status none = Get("bare", &response);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(none.error_message(),
            "model bare has no tokenizer: it was not loaded from a Hugging Face directory");
  const grpc::Status unknown = Get("other", &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("other"));
  EXPECT_EQ(Get("", &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

class TooLargeTokenizerTest : public TokenizerTest {
 protected:
  TooLargeTokenizerTest() : TokenizerTest(999) {}
};

TEST_F(TooLargeTokenizerTest, IsRefused) {
  v1::GetTokenizerResponse response;
  const grpc::Status status = Get("tiny", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "the tokenizer of model tiny has 1000 bytes; the server allows 999 "
            "(--max-answer-bytes)");
}

TEST_F(TokenizerTest, TruncationCutsWhereTheModelIsMeantToEnd) {
  v1::EncodeRequest request = Ids(12);
  request.set_truncation(v1::TRUNCATE_RIGHT);
  v1::EncodeResponse response;
  ASSERT_TRUE(server_.Encode(request, &response).ok());
  EXPECT_EQ(response.execution().tokens(), 8);
  EXPECT_EQ(response.execution().truncated_tokens(), 4);
}

TEST_F(TokenizerTest, WithoutTruncationThePositionsAreTheLimit) {
  v1::EncodeResponse response;
  ASSERT_TRUE(server_.Encode(Ids(64), &response).ok());
  EXPECT_EQ(response.execution().tokens(), 64);
  const grpc::Status status = server_.Encode(Ids(65), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("at most 64 positions in a sequence; got 65"));
}

TEST_F(TokenizerTest, TheModelTellsBothLengths) {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model("tiny");
  v1::GetModelResponse response;
  ASSERT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
  EXPECT_EQ(response.embeddings().longest_sequence(), 64);
  EXPECT_EQ(response.embeddings().max_sequence_length(), 8);
}

}  // namespace tokenizer_test
}  // namespace attendant::server
