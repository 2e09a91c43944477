// Lists of CPUs, and binding of threads to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// CPU numbers in ascending order, without duplicates.
using CpuList = std::vector<int>;

// Convert from and to the kernel's notation, such as "0-3,8", which it also uses for node numbers.
// Parsing returns an empty list for an empty string, and nothing for an invalid one.
std::optional<CpuList> ParseCpuList(absl::string_view text);
std::string ToString(const CpuList& cpus);

// Returns the CPUs that the calling thread may run on; at least one.
CpuList AllowedCpus();

// Restricts the calling thread, and threads that it starts later, to these CPUs. Returns
// FAILED_PRECONDITION if none of them exists or is allowed.
absl::Status BindThread(const CpuList& cpus);

}  // namespace attendant
