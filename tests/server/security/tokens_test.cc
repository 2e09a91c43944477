#include "server/security/tokens.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace tokens_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The SHA-256 of "test", "alpha" and "".
constexpr char kTest[] = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
constexpr char kAlpha[] = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

Tokens Parse(const std::string& text) {
  absl::StatusOr<Tokens> tokens = Tokens::Parse(text);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return *std::move(tokens);
}

std::string Error(const std::string& text) {
  const absl::StatusOr<Tokens> tokens = Tokens::Parse(text);
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tokens.status().message());
}

TEST(TokensTest, KnowTheirScopes) {
  const Tokens tokens = Parse(absl::StrCat("# those of today\n\ninfer ", kTest,
                                           "  # of the gateway\r\nmetrics,infer\t", kAlpha, "\n"));
  EXPECT_TRUE(tokens.Identify("Bearer test", TokenScope::kInfer).ok());
  EXPECT_EQ(tokens.Identify("Bearer test", TokenScope::kMetrics).status(),
            absl::PermissionDeniedError("the bearer token lacks the scope metrics"));
  EXPECT_TRUE(tokens.Identify("Bearer alpha", TokenScope::kInfer).ok());
  EXPECT_TRUE(tokens.Identify("bearer  alpha ", TokenScope::kMetrics).ok());
}

TEST(TokensTest, ATokenOnTwoLinesHasTheScopesOfBoth) {
  const Tokens tokens = Parse(absl::StrCat("infer ", kTest, "\nmetrics ", kTest));
  EXPECT_TRUE(tokens.Identify("Bearer test", TokenScope::kInfer).ok());
  EXPECT_TRUE(tokens.Identify("Bearer test", TokenScope::kMetrics).ok());
}

TEST(TokensTest, NameWhoHasThemWithoutTellingThem) {
  const Tokens tokens = Parse(absl::StrCat("infer ", kTest, "\nmetrics ", kAlpha));
  EXPECT_EQ(*tokens.Identify("Bearer test", TokenScope::kInfer), "token 9f86d081884c7d65");
  EXPECT_EQ(*tokens.Identify("bearer  test ", TokenScope::kInfer), "token 9f86d081884c7d65");
  EXPECT_EQ(*tokens.Identify("Bearer alpha", TokenScope::kMetrics), "token 8ed3f6ad685b959e");
}

TEST(TokensTest, RefuseEverythingElse) {
  const Tokens tokens = Parse(absl::StrCat("infer ", kTest, "\ninfer ", kEmpty));
  for (const char* authorization :
       {"", "test", "Bearer", "Bearer ", "Bearer tes", "Bearer testt", "Bearer TEST", "Basic test",
        "Bearer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}) {
    EXPECT_EQ(tokens.Identify(authorization, TokenScope::kInfer).status(),
              absl::UnauthenticatedError("the call needs a valid bearer token"))
        << authorization;
  }
}

TEST(TokensTest, BadFilesAreRefusedWithoutTellingASecret) {
  const std::string good = absl::StrCat("infer ", kTest, "\n");
  for (const std::string& bad :
       {std::string("secret"), std::string("infer secret"), absl::StrCat("admin ", kTest),
        absl::StrCat("infer,secret ", kTest), absl::StrCat("infer, ", kTest), std::string(kTest),
        absl::StrCat("infer ", kTest, "0"), absl::StrCat("infer ", kTest, " secret"),
        absl::StrCat("infer ", std::string(64, 'g'))}) {
    EXPECT_THAT(Error(good + bad),
                AllOf(HasSubstr("--token-file: line 2: expected scopes"), Not(HasSubstr("secret"))))
        << bad;
  }
  EXPECT_EQ(Error(""), "--token-file: expected at least one token; got none");
  EXPECT_EQ(Error("# nothing\n"), "--token-file: expected at least one token; got none");
}

}  // namespace tokens_test
}  // namespace attendant::server
