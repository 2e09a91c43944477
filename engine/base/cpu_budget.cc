#include "engine/base/cpu_budget.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/cpu_list.h"

namespace attendant {
namespace {

std::optional<double> Ratio(const std::string& quota, const std::string& period) {
  double q, p;
  if (!absl::SimpleAtod(quota, &q) || !absl::SimpleAtod(period, &p) || q <= 0 || p <= 0)
    return std::nullopt;
  return q / p;
}

// Returns the number of CPUs that this group's bandwidth quota allows, or nothing without a quota.
std::optional<double> QuotaOf(const std::string& folder) {
  std::string quota, period;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> quota >> period) return Ratio(quota, period);
  std::ifstream v1_quota(folder + "/cpu.cfs_quota_us"), v1_period(folder + "/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period) return Ratio(quota, period);
  return std::nullopt;
}

// Returns the smallest quota of the process's groups.
std::optional<double> CgroupQuota(const CgroupFiles& cgroup) {
  std::optional<double> least;
  for (const std::string& folder : CgroupFolders(cgroup, "cpu")) {
    const std::optional<double> quota = QuotaOf(folder);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

}  // namespace

CpuBudget MeasureCpuBudget(const CgroupFiles& cgroup) {
  const int online = std::max<int>(std::thread::hardware_concurrency(), 1);
  const int allowed = static_cast<int>(AllowedCpus().size());
  CpuBudget budget{allowed,
                   absl::StrCat(allowed, " of ", std::max(online, allowed), " CPUs by affinity")};
  if (const std::optional<double> quota = CgroupQuota(cgroup)) {
    budget.reason += absl::StrFormat(", cgroup quota %.2f", *quota);
    if (*quota < budget.threads) budget.threads = std::max(static_cast<int>(std::ceil(*quota)), 1);
  } else {
    budget.reason += ", no cgroup quota";
  }
  return budget;
}

}  // namespace attendant
