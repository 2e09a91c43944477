// PullProgress, which shows the progress of a pull from the Hub.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/hub/pull_model.h"

namespace attendant::server {

// Returns whether progress can be one line that is rewritten, because standard error is a terminal
// and the log is plain text.
bool RewritesLine(bool logs_text);

// Tracks one pull. Not thread-safe.
class PullProgress {
 public:
  // `what` begins each line. Writes log lines, at most one in five seconds, unless `rewrites_line`.
  PullProgress(std::string what, bool rewrites_line, const Clock& clock = RealClock());
  // Ends the terminal's line.
  ~PullProgress();
  PullProgress(const PullProgress&) = delete;
  PullProgress& operator=(const PullProgress&) = delete;

  // Valid during the object's lifetime.
  PullReport report();

 private:
  void Show(int64_t done, int64_t total);
  void Note(const std::string& line);
  void EndLine();

  const std::string what_;
  const bool rewrites_line_;
  const Clock& clock_;
  absl::Time next_ = absl::InfinitePast();
  int64_t shown_ = -1;     // bytes in the last line
  bool has_line_ = false;  // the terminal's line is unfinished
};

}  // namespace attendant::server
