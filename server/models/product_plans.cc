#include "server/models/product_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace attendant::server {
namespace {

std::string Widths(const ProductPlan& plan) { return absl::StrCat(plan.in, "x", plan.out); }

std::string Products(const ProductPlan& plan) {
  const std::string implementations = absl::StrJoin(plan.implementations, " and ");
  switch (plan.gemm) {
    case Gemm::kTiles:
      return "the AMX GEMM";
    case Gemm::kVector:
      return absl::StrCat("the vector GEMM (", implementations, ")",
                          plan.weights == WeightType::kF32
                              ? ""
                              : absl::StrCat(" over ", Name(plan.weights), " weights"));
    default:
      return absl::StrCat("oneDNN ", implementations);
  }
}

std::string Choice(const ProductPlan& plan) {
  std::vector<std::string> cuts;
  if (!plan.tile_rows.empty()) {
    cuts.push_back(absl::StrCat("row tiles of ", absl::StrJoin(plan.tile_rows, ", ")));
  }
  if (plan.k_block < plan.in) cuts.push_back(absl::StrCat("K blocks of ", plan.k_block));
  return absl::StrCat(Products(plan), cuts.empty() ? "" : " in ", absl::StrJoin(cuts, " and "));
}

// Returns the name of the member's value, or "mixed" if the plans differ.
template <typename T>
std::string CommonName(absl::Span<const ProductPlan> plans, T ProductPlan::*member) {
  const T first = plans.front().*member;
  const bool all_alike = std::all_of(
      plans.begin(), plans.end(), [&](const ProductPlan& plan) { return plan.*member == first; });
  return all_alike ? Name(first) : "mixed";
}

}  // namespace

std::string Describe(absl::Span<const ProductPlan> plans) {
  // Each choice with the widths of its layers.
  std::vector<std::pair<std::string, std::vector<std::string>>> choices;
  std::vector<std::string> speedups;
  for (const ProductPlan& plan : plans) {
    const std::string choice = Choice(plan);
    const auto same = [&](const auto& other) { return other.first == choice; };
    auto found = std::find_if(choices.begin(), choices.end(), same);
    if (found == choices.end()) found = choices.insert(found, {choice, {}});
    found->second.push_back(Widths(plan));
    if (plan.tiles_speedup == 0) continue;
    speedups.push_back(absl::StrFormat("%s %.2fx", Widths(plan), plan.tiles_speedup));
  }
  std::vector<std::string> parts;
  for (const auto& [choice, widths] : choices) {
    parts.push_back(absl::StrCat(choice, " for ", absl::StrJoin(widths, ", ")));
  }
  if (!speedups.empty()) {
    parts.push_back(absl::StrCat("the AMX GEMM against oneDNN: ", absl::StrJoin(speedups, ", ")));
  }
  return absl::StrCat("matrix products (in x out): ", absl::StrJoin(parts, "; "));
}

std::string GemmOf(absl::Span<const ProductPlan> plans) {
  return plans.empty() ? "" : CommonName(plans, &ProductPlan::gemm);
}

std::string WeightTypeOf(ComputeType type, absl::Span<const ProductPlan> plans) {
  if (type != ComputeType::kF32 || plans.empty()) return "";
  return CommonName(plans, &ProductPlan::weights);
}

}  // namespace attendant::server
