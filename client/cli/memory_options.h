// MemoryOptions, the flags of a memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/flags/flag.h"
#include "client/messages.h"

namespace attendant::client {

// The flags of a memory and the files that they name.
class MemoryOptions {
 public:
  // Returns the flags, which write into this object.
  Flags MemoryFlags(bool required);

  // Reads the files. Returns nothing without --memory. A lone sequence gets its batch dimension,
  // where `layout` puts it. INVALID_ARGUMENT and NOT_FOUND name the flag or the file.
  absl::StatusOr<std::optional<Memory>> Read(Layout layout) const;

 private:
  std::string memory_;
  std::string values_;
  std::string mask_;
  std::vector<int64_t> lengths_;
};

}  // namespace attendant::client
