// PullProgress, which shows the progress of a pull from the Hub.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/hub/pull_model.h"

namespace attendant::server {

enum class ProgressStyle {
  kLog,   // lines of the log, at most one in five seconds
  kLine,  // one line on standard error, a terminal, that is rewritten
};

// Returns kLine if standard error is a terminal and the log is made of plain text.
ProgressStyle StyleOfProgress(bool logs_text);

// For one pull. Not thread-safe.
class PullProgress {
 public:
  // `what` begins each line.
  PullProgress(std::string what, ProgressStyle style, const Clock& clock = RealClock());
  // Ends the line of a terminal.
  ~PullProgress();
  PullProgress(const PullProgress&) = delete;
  PullProgress& operator=(const PullProgress&) = delete;

  // Valid as long as the object.
  PullReport report();

 private:
  void Show(int64_t done, int64_t total);
  void Note(const std::string& line);
  void EndLine();

  const std::string what_;
  const ProgressStyle style_;
  const Clock& clock_;
  absl::Time next_ = absl::InfinitePast();
  int64_t shown_ = -1;     // bytes in the last line
  bool has_line_ = false;  // the terminal's line has no end yet
};

}  // namespace attendant::server
