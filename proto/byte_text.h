// Human-readable byte counts.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace attendant::proto {

// Returns, for example, "1.5 MiB".
inline std::string InMebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace attendant::proto
