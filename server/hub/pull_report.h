// PullReport, the callbacks of a pull.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace attendant::server {

struct PullReport {
  // Called with a line about a retry, a wait or a fallback.
  std::function<void(const std::string& line)> note;
  // Called as bytes arrive: those received so far, and all bytes to receive.
  std::function<void(int64_t done, int64_t total)> progress;
};

}  // namespace attendant::server
