// Errors in the forms of all APIs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/metrics/refusal.h"
#include "server/text_api/text_error.h"

namespace attendant::server {
namespace errors_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Answer(ErrorStyle style, const absl::Status& error) {
  const HttpAnswer answer = TextErrorAnswer(style, error);
  EXPECT_EQ(answer.content_type, "application/json");
  return absl::StrCat(answer.status, " ", answer.body);
}

TEST(TextErrorsTest, HaveTheFormOfEachApi) {
  const absl::Status error = InvalidMember("input[2]", "a string", "7");
  EXPECT_EQ(error, TextError(TextErrorKind::kInvalid, "input[2]: expected a string; got 7"));
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Answer(ErrorStyle::kOpenAi, error),
            R"(400 {"error":{"message":"input[2]: expected a string; got 7",)"
            R"("type":"invalid_request_error","param":"input","code":null},)"
            R"("detail":"input[2]: expected a string; got 7"})");
  EXPECT_EQ(Answer(ErrorStyle::kTei, error),
            R"(422 {"error":"input[2]: expected a string; got 7","error_type":"Validation"})");
  EXPECT_EQ(Answer(ErrorStyle::kCohere, error),
            R"(400 {"message":"input[2]: expected a string; got 7"})");
  EXPECT_EQ(Answer(ErrorStyle::kJina, error),
            R"(400 {"detail":"input[2]: expected a string; got 7",)"
            R"("message":"input[2]: expected a string; got 7"})");
  EXPECT_EQ(Answer(ErrorStyle::kOllama, error),
            R"(400 {"error":"input[2]: expected a string; got 7"})");
}

TEST(TextErrorsTest, HaveAStatusATypeAndACodeForEachKind) {
  struct Row {
    TextErrorKind kind;
    const char* openai;
    const char* tei;
  };
  using Kind = TextErrorKind;
  const Row rows[] = {
      {Kind::kInvalid, "400 invalid_request_error null", "422 Validation"},
      {Kind::kMalformed, "400 invalid_request_error null", "400 Validation"},
      {Kind::kEmpty, "400 invalid_request_error null", "400 Empty"},
      {Kind::kOversized, "400 invalid_request_error null", "413 Validation"},
      {Kind::kUntokenizable, "400 invalid_request_error null", "422 Tokenizer"},
      {Kind::kLargeBody, "413 invalid_request_error null", "413 Validation"},
      {Kind::kNoKey, "401 invalid_request_error \"invalid_api_key\"", "401 Validation"},
      {Kind::kForbidden, "403 invalid_request_error \"forbidden\"", "403 Validation"},
      {Kind::kNoModel, "404 invalid_request_error \"model_not_found\"", "404 Validation"},
      {Kind::kNoRoute, "404 invalid_request_error \"unknown_url\"", "404 Validation"},
      {Kind::kNoMethod, "405 invalid_request_error \"method_not_allowed\"", "405 Validation"},
      {Kind::kUnfit, "400 invalid_request_error \"model_not_supported\"", "424 Backend"},
      {Kind::kBusy, "429 rate_limit_error \"rate_limit_exceeded\"", "429 Overloaded"},
      {Kind::kTimeout, "504 api_error \"timeout\"", "504 Backend"},
      {Kind::kUnavailable, "503 api_error \"service_unavailable\"", "503 Unhealthy"},
      {Kind::kGone, "499 api_error \"cancelled\"", "499 Backend"},
      {Kind::kBroken, "500 api_error \"internal_error\"", "500 Backend"},
      {Kind::kFailed, "502 api_error \"server_error\"", "424 Backend"}};
  for (const Row& row : rows) {
    const absl::Status error = TextError(row.kind, "no.");
    EXPECT_EQ(KindOf(error), row.kind) << row.openai;
    const std::string openai(row.openai), tei(row.tei);
    const size_t code = openai.rfind(' ');
    EXPECT_EQ(Answer(ErrorStyle::kOpenAi, error),
              absl::StrCat(openai.substr(0, 4), R"({"error":{"message":"no.","type":")",
                           openai.substr(4, code - 4), R"(","param":null,"code":)",
                           openai.substr(code + 1), R"(},"detail":"no."})"));
    EXPECT_EQ(
        Answer(ErrorStyle::kTei, error),
        absl::StrCat(tei.substr(0, 4), R"({"error":"no.","error_type":")", tei.substr(4), "\"}"));
    for (const ErrorStyle style : {ErrorStyle::kCohere, ErrorStyle::kJina, ErrorStyle::kOllama}) {
      EXPECT_EQ(TextErrorAnswer(style, error).status,
                TextErrorAnswer(ErrorStyle::kOpenAi, error).status);
    }
  }
}

TEST(TextErrorsTest, AStatusOfTheServerHasTheKindOfItsCode) {
  EXPECT_EQ(KindOf(absl::InvalidArgumentError("")), TextErrorKind::kInvalid);
  EXPECT_EQ(KindOf(absl::NotFoundError("")), TextErrorKind::kNoModel);
  EXPECT_EQ(KindOf(absl::FailedPreconditionError("")), TextErrorKind::kUnfit);
  EXPECT_EQ(KindOf(absl::UnimplementedError("")), TextErrorKind::kUnfit);
  EXPECT_EQ(KindOf(absl::OutOfRangeError("")), TextErrorKind::kLargeBody);
  EXPECT_EQ(KindOf(absl::UnauthenticatedError("")), TextErrorKind::kNoKey);
  EXPECT_EQ(KindOf(absl::PermissionDeniedError("")), TextErrorKind::kForbidden);
  EXPECT_EQ(KindOf(absl::ResourceExhaustedError("")), TextErrorKind::kBusy);
  EXPECT_EQ(KindOf(absl::DeadlineExceededError("")), TextErrorKind::kTimeout);
  EXPECT_EQ(KindOf(absl::UnavailableError("")), TextErrorKind::kUnavailable);
  EXPECT_EQ(KindOf(absl::CancelledError("")), TextErrorKind::kGone);
  EXPECT_EQ(KindOf(absl::InternalError("")), TextErrorKind::kBroken);
  EXPECT_EQ(KindOf(absl::DataLossError("")), TextErrorKind::kBroken);
}

TEST(TextErrorsTest, ParamIsTheMemberThatTheMessageNames) {
  const auto body = [](const char* message) {
    return TextErrorAnswer(ErrorStyle::kOpenAi, absl::InvalidArgumentError(message)).body;
  };
  const auto param = [&](const char* message) {
    const std::string text = body(message);
    const size_t begin = text.find("\"param\":") + 8;
    return text.substr(begin, text.find(",\"code\"") - begin);
  };
  EXPECT_EQ(param("model: no model is named \"x\""), "\"model\"");
  EXPECT_EQ(param("inputs.sentences[3]: too long"), "\"inputs.sentences\"");
  EXPECT_EQ(param("the body: expected a JSON object; got null"), "null");
  EXPECT_EQ(param("the queue is full: retry later"), "null");
  EXPECT_EQ(param("no field"), "null");
}

TEST(TextErrorsTest, SayWhenToTryAgain) {
  const absl::Status full = Refused(Refusal::kQueueTokens, "the queue is full");
  const HttpAnswer answer = TextErrorAnswer(ErrorStyle::kTei, full, absl::Milliseconds(1500));
  EXPECT_EQ(answer.status, 429u);
  EXPECT_THAT(answer.headers,
              ElementsAre(Pair("Attendant-Reason", "queue_tokens"), Pair("Retry-After", "2"),
                          Pair("Retry-After-Ms", "1500")));
  EXPECT_THAT(TextErrorAnswer(ErrorStyle::kTei, Refused(Refusal::kDeadlineHopeless, "")).headers,
              ElementsAre(Pair("Attendant-Reason", "deadline_hopeless")));
  EXPECT_THAT(TextErrorAnswer(ErrorStyle::kTei, absl::NotFoundError("")).headers, IsEmpty());
}

TEST(TextErrorsTest, AskForAToken) {
  EXPECT_EQ(TextErrorAnswer(ErrorStyle::kTei, absl::UnauthenticatedError("")).authenticate,
            "Bearer");
}

TEST(TextErrorsTest, MessagesAreEscaped) {
  EXPECT_EQ(Answer(ErrorStyle::kCohere, absl::InvalidArgumentError("a \"b\" \n \xff")),
            "400 {\"message\":\"a \\\"b\\\" \\n \xef\xbf\xbd\"}");
}

}  // namespace errors_test
}  // namespace attendant::server
