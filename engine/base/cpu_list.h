// CPUs by number, as the kernel lists them, and the threads that may run on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Ascending, each once.
using CpuList = std::vector<int>;

// The kernel's notation, "0-3,8"; also of node numbers. Nothing: it is none. An empty text is an
// empty list.
std::optional<CpuList> ParseCpuList(absl::string_view text);
std::string ToString(const CpuList& cpus);

// Those that the calling thread may run on; at least one.
CpuList AllowedCpus();

// The calling thread, and those that it starts from then on, run on these alone.
// FAILED_PRECONDITION if the kernel refuses: none of them is there, or allowed.
absl::Status BindThread(const CpuList& cpus);

}  // namespace attendant
