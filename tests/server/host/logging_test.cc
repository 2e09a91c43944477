#include "server/host/logging.h"

#include <fcntl.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace logging_test {

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

std::string ReadAll(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

// A thread that waited for the reader would make its request wait, and others with it.
TEST(LoggingTest, DropsLinesWhileNobodyReads) {
  StartLogging(LogFormat::kText, "info");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  spdlog::info("lost");
  spdlog::info("lost");
  ReadAll(ends[0]);
  spdlog::info("kept");
  spdlog::info("too");
  dup2(saved, STDERR_FILENO);
  EXPECT_THAT(ReadAll(ends[0]), MatchesRegex("[^ ]+ warning 2 log lines were dropped\n"
                                             "[^ ]+ info kept\n[^ ]+ info too\n"));
  for (const int fd : {saved, ends[0], ends[1]}) close(fd);
}

TEST(EscapeControlsTest, KeepsEverythingElse) {
  EXPECT_EQ(EscapeControls("a \"b\" \\ é\t\r"), "a \"b\" \\ é\\t\\x0d");
}

}  // namespace logging_test
}  // namespace attendant::server
