#include "server/pull_progress.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "proto/byte_text.h"
#include "server/host/logging.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(5);
constexpr absl::Duration kLineInterval = absl::Milliseconds(100);

}  // namespace

bool RewritesLine(bool logs_text) { return logs_text && isatty(STDERR_FILENO) == 1; }

PullProgress::PullProgress(std::string what, bool rewrites_line, const Clock& clock)
    : what_(std::move(what)), rewrites_line_(rewrites_line), clock_(clock) {}

PullProgress::~PullProgress() { EndLine(); }

PullReport PullProgress::report() {
  return {[this](const std::string& line) { Note(line); },
          [this](int64_t done, int64_t total) { Show(done, total); }};
}

void PullProgress::Show(int64_t done, int64_t total) {
  const bool is_last = done == total && shown_ != total;
  if (clock_.Now() < next_ && !is_last) return;
  next_ = clock_.Now() + (rewrites_line_ ? kLineInterval : kLogInterval);
  shown_ = done;
  const double percent =
      total == 0 ? 100 : 100.0 * static_cast<double>(done) / static_cast<double>(total);
  const std::string text =
      absl::StrFormat("%s: pulled %.0f %% of %s", what_, percent, proto::InMebibytes(total));
  if (!rewrites_line_) return spdlog::info("{}", text);
  // Clears the line first.
  std::fprintf(stderr, "\r\033[K%s", EscapeControls(text).c_str());
  std::fflush(stderr);
  has_line_ = true;
}

void PullProgress::Note(const std::string& line) {
  EndLine();
  spdlog::warn("{}: {}", what_, line);
}

void PullProgress::EndLine() {
  if (std::exchange(has_line_, false)) std::fputc('\n', stderr);
}

}  // namespace attendant::server
