// Tests of Tokenize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/support/text_models.h"

namespace attendant::server {
namespace tokenize_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestServerOptions Serving(int64_t max_answer_bytes) {
  TestServerOptions options;
  options.models = TextModels();
  options.limits.max_answer_bytes = max_answer_bytes;
  return options;
}

class TokenizeTest : public ::testing::Test {
 protected:
  explicit TokenizeTest(int64_t max_answer_bytes = int64_t{1} << 20)
      : server_(Serving(max_answer_bytes)) {}

  static v1::TokenizeRequest Texts(std::vector<std::string> texts) {
    v1::TokenizeRequest request;
    request.set_model("tiny");
    for (std::string& text : texts) request.add_texts(std::move(text));
    return request;
  }

  grpc::Status Tokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse* response) {
    grpc::ClientContext context;
    return server_.stub().Tokenize(&context, request, response);
  }

  TestServer server_;
};

TEST_F(TokenizeTest, ReturnsTheTokensOfEncode) {
  v1::TokenizeRequest request = Texts({"hello world", "goodbye"});
  request.add_text_pairs("good");
  request.add_text_pairs("");
  v1::TokenizeResponse response;
  grpc::Status status = Tokenize(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.texts_size(), 2);
  EXPECT_THAT(response.texts(0).ids(), ElementsAre(2, 4, 5, 3, 6, 3));
  EXPECT_THAT(response.texts(0).token_type_ids(), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(response.texts(0).sources(), ElementsAre(2, 0, 0, 2, 1, 2));
  EXPECT_THAT(response.texts(0).begins(), ElementsAre(0, 0, 6, 0, 0, 0));
  EXPECT_THAT(response.texts(0).ends(), ElementsAre(0, 5, 11, 0, 4, 0));
  EXPECT_THAT(response.texts(1).tokens(), ElementsAre("[CLS]", "good", "##bye", "[SEP]", "[SEP]"));
  request = Texts({"hello hello hello hello hello hello hello hello"});
  request.set_truncation(v1::TRUNCATE_RIGHT);
  request.set_omit_special_tokens(true);
  ASSERT_TRUE(Tokenize(request, &response).ok());
  EXPECT_THAT(response.texts(0).ids(), ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_FALSE(response.texts(0).truncated());
  request.set_omit_special_tokens(false);
  request.set_prompt_name("query");
  ASSERT_TRUE(Tokenize(request, &response).ok());
  EXPECT_THAT(response.texts(0).ids(), ElementsAre(2, 8, 9, 4, 4, 4, 4, 3));
  EXPECT_TRUE(response.texts(0).truncated());
}

TEST_F(TokenizeTest, RefusesWhatEncodeRefuses) {
  v1::TokenizeResponse response;
  grpc::Status status = Tokenize(Texts({}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "texts: expected at least one text; got none");
  status = Tokenize(Texts(std::vector<std::string>(1025, "a")), &response);
  EXPECT_EQ(status.error_message(), "texts: expected at most 1024 texts; got more");
  v1::TokenizeRequest request = Texts({"hello"});
  request.set_model("none");
  EXPECT_EQ(Tokenize(request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_model("bare");
  status = Tokenize(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("texts: not supported by model \"bare\": "));
  status = Tokenize(Texts(std::vector<std::string>(90, "hello")), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("at most 256 tokens in total"));
}

class SmallTokenizeTest : public TokenizeTest {
 protected:
  SmallTokenizeTest() : TokenizeTest(1000) {}
};

TEST_F(SmallTokenizeTest, RefusesAnswersThatAreTooLarge) {
  v1::TokenizeResponse response;
  const grpc::Status status = Tokenize(Texts(std::vector<std::string>(10, "hello")), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("bytes; the server allows 1000 (--max-answer-bytes)"));
  EXPECT_TRUE(Tokenize(Texts({"hello"}), &response).ok());
}

}  // namespace tokenize_test
}  // namespace attendant::server
