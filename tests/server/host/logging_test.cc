#include "server/host/logging.h"

#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace {

using ::testing::MatchesRegex;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(LoggingTest, TextStaysOnItsLine) {
  StartLogging(LogFormat::kText, "info");
  CaptureStderr();
  spdlog::info("id \"x\"\n2026-01-01 forged\x1b[31m");
  EXPECT_THAT(GetCapturedStderr(),
              MatchesRegex("[0-9-]+T[0-9:.]+Z info id \"x\"\\\\n2026-01-01 forged\\\\x1b\\[31m\n"));
}

TEST(LoggingTest, JsonLinesParse) {
  StartLogging(LogFormat::kJson, "info");
  CaptureStderr();
  spdlog::warn("quote \" backslash \\ line\nbreak, not UTF-8: \xff");
  const std::string line = GetCapturedStderr();
  const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
  ASSERT_TRUE(entry.is_object()) << line;
  EXPECT_EQ(entry["level"], "warning");
  EXPECT_EQ(entry["message"], "quote \" backslash \\ line\nbreak, not UTF-8: \xef\xbf\xbd");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(LoggingTest, LeavesOutWhatIsBelowTheLevel) {
  StartLogging(LogFormat::kText, "warn");
  CaptureStderr();
  spdlog::info("not this");
  EXPECT_EQ(GetCapturedStderr(), "");
}

// Sets the verbosity that a gRPC server sets when it starts, unless GRPC_VERBOSITY is given.
void StartGrpcLogging() { gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR); }

TEST(LoggingTest, TakesTheMessagesOfGrpcAndProtobuf) {
  StartLogging(LogFormat::kText, "debug");
  StartGrpcLogging();
  CaptureStderr();
  gpr_log(GPR_ERROR, "a caller's mistake");
  GOOGLE_LOG(ERROR) << "another\nline";
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("[^ ]+ debug grpc: a caller's mistake\n"
                                                "[^ ]+ debug protobuf: another\\\\nline\n"));
}

TEST(LoggingTest, SaysWhyGrpcOrProtobufEndsTheProcess) {
  StartLogging(LogFormat::kText, "error");
  StartGrpcLogging();
  CaptureStderr();
  gpr_log(GPR_ERROR, "assertion failed: %s", "x");
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("[^ ]+ critical grpc: assertion failed: x\n"));
  CaptureStderr();
  EXPECT_THROW(GOOGLE_LOG(FATAL) << "no", google::protobuf::FatalException);
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("[^ ]+ critical protobuf: no\n"));
}

TEST(EscapeControlsTest, KeepsEverythingElse) {
  EXPECT_EQ(EscapeControls("a \"b\" \\ é\t\r"), "a \"b\" \\ é\\t\\x0d");
}

}  // namespace
}  // namespace attendant::server
