#include "engine/base/cpu_list.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

// Far more than any kernel supports. Longer lists are invalid.
constexpr int kMostCpus = 1 << 16;

// The kernel may support more CPUs than cpu_set_t can hold.
using CpuMask = std::vector<unsigned long>;  // NOLINT(google-runtime-int): of sched_setaffinity
constexpr int kBitsPerWord = 8 * sizeof(CpuMask::value_type);

// "3" or "3-5".
bool AppendRange(absl::string_view range, CpuList& cpus) {
  const std::vector<std::string> ends = absl::StrSplit(range, '-');
  int first, last;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
      !absl::SimpleAtoi(ends.back(), &last)) {
    return false;
  }
  if (first < 0 || last < first || last >= kMostCpus) return false;
  if (!cpus.empty() && first <= cpus.back()) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

}  // namespace

std::optional<CpuList> ParseCpuList(absl::string_view text) {
  CpuList cpus;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return cpus;
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    if (!AppendRange(range, cpus)) return std::nullopt;
  }
  return cpus;
}

std::string ToString(const CpuList& cpus) {
  std::vector<std::string> ranges;
  for (size_t begin = 0, end; begin < cpus.size(); begin = end) {
    end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    ranges.push_back(absl::StrCat(cpus[begin]));
    if (end > begin + 1) absl::StrAppend(&ranges.back(), "-", cpus[end - 1]);
  }
  return absl::StrJoin(ranges, ",");
}

CpuList AllowedCpus() {
  CpuList cpus;
  for (int bits = CPU_SETSIZE; bits <= kMostCpus; bits *= 2) {
    CpuMask mask(bits / kBitsPerWord);
    if (sched_getaffinity(0, mask.size() * sizeof(mask[0]),
                          reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      continue;  // the kernel supports more CPUs
    }
    for (int cpu = 0; cpu < bits; ++cpu) {
      if (mask[cpu / kBitsPerWord] >> cpu % kBitsPerWord & 1) cpus.push_back(cpu);
    }
    if (!cpus.empty()) return cpus;
  }
  cpus.resize(std::max<int>(std::thread::hardware_concurrency(), 1));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

absl::Status BindThread(const CpuList& cpus) {
  CpuMask mask(cpus.empty() ? 1 : cpus.back() / kBitsPerWord + 1);
  for (const int cpu : cpus) mask[cpu / kBitsPerWord] |= 1ul << cpu % kBitsPerWord;
  if (sched_setaffinity(0, mask.size() * sizeof(mask[0]),
                        reinterpret_cast<const cpu_set_t*>(mask.data())) == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot bind a thread to CPUs ", ToString(cpus), ": ", std::strerror(errno)));
}

}  // namespace attendant
