#include "server/pull_progress.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace pull_progress_test {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr int64_t kMiB = int64_t{1} << 20;

class PullProgressTest : public ::testing::Test {
 protected:
  PullProgressTest() {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~PullProgressTest() override { spdlog::set_default_logger(saved_); }

  const std::shared_ptr<spdlog::logger> saved_ = spdlog::default_logger();
  std::ostringstream log_;
  FakeClock clock_;
};

TEST_F(PullProgressTest, LogsALineInFiveSecondsAndTheLast) {
  PullProgress progress("hf:a/b", /*rewrites_line=*/false, clock_);
  const PullReport report = progress.report();
  report.progress(0, 4 * kMiB);
  report.progress(kMiB, 4 * kMiB);
  clock_.Advance(absl::Seconds(5));
  report.progress(2 * kMiB, 4 * kMiB);
  report.note("trying again");
  report.progress(4 * kMiB, 4 * kMiB);
  report.progress(4 * kMiB, 4 * kMiB);
  EXPECT_EQ(log_.str(),
            "info hf:a/b: pulled 0 % of 4.0 MiB\n"
            "info hf:a/b: pulled 50 % of 4.0 MiB\n"
            "warning hf:a/b: trying again\n"
            "info hf:a/b: pulled 100 % of 4.0 MiB\n");
}

TEST_F(PullProgressTest, RewritesTheLineOfATerminal) {
  CaptureStderr();
  {
    PullProgress progress("hf:a/b", /*rewrites_line=*/true, clock_);
    const PullReport report = progress.report();
    report.progress(kMiB, 4 * kMiB);
    report.progress(2 * kMiB, 4 * kMiB);
    clock_.Advance(absl::Seconds(1));
    report.note("trying again");
    report.progress(3 * kMiB, 4 * kMiB);
  }
  EXPECT_EQ(GetCapturedStderr(),
            "\r\033[Khf:a/b: pulled 25 % of 4.0 MiB\n"
            "\r\033[Khf:a/b: pulled 75 % of 4.0 MiB\n");
  EXPECT_EQ(log_.str(), "warning hf:a/b: trying again\n");
}

TEST_F(PullProgressTest, IsALogWithoutATerminal) {
  CaptureStderr();
  EXPECT_FALSE(RewritesLine(/*logs_text=*/true));
  EXPECT_FALSE(RewritesLine(/*logs_text=*/false));
  GetCapturedStderr();
}

}  // namespace pull_progress_test
}  // namespace attendant::server
