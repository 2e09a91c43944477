#include "engine/layers/state/row_plan.h"

#include <algorithm>
#include <iterator>

namespace attendant {
namespace {

constexpr absl::Duration kBudget = absl::Milliseconds(250);
constexpr int64_t kCandidates[] = {kMostTrialTokens, 512, 256, 128};
constexpr int64_t kWarmUpTokens = 64;
constexpr int kFewestRounds = 3;
constexpr int kMostRounds = 5;
// Splits by rows unless this is slower by more than noise. Where noise hides which way is faster,
// wrongly splitting by rows was measured to cost 2 %, and wrongly splitting by panel 27 %.
constexpr double kMargin = 1.02;

}  // namespace

RowPlan TimeRowPlans(int64_t most_tokens, absl::FunctionRef<void(int64_t, bool)> run,
                     absl::FunctionRef<absl::Time()> now) {
  RowPlan plan;
  if (most_tokens < *std::min_element(std::begin(kCandidates), std::end(kCandidates))) return plan;
  const absl::Time deadline = now() + kBudget;
  const auto time = [&](int64_t tokens, bool by_rows) {
    const absl::Time begin = now();
    run(tokens, by_rows);
    return now() - begin;
  };
  // As many rounds as fit into half of the remaining time.
  const auto measure = [&](int64_t tokens) {
    RowTrial trial = {tokens, absl::InfiniteDuration(), absl::InfiniteDuration()};
    const absl::Duration leave = (deadline - now()) / 2;
    for (int round = 0; round < kMostRounds; ++round) {
      if (round >= kFewestRounds && deadline - now() < leave) break;
      for (const bool by_rows : {round % 2 == 0, round % 2 == 1}) {
        absl::Duration& best = by_rows ? trial.rows : trial.team;
        best = std::min(best, time(tokens, by_rows));
      }
    }
    return trial;
  };
  // The first run starts the threads and touches memory.
  const absl::Duration cold = time(kWarmUpTokens, false);
  const absl::Duration few = std::min(cold, time(kWarmUpTokens, false));
  for (const int64_t tokens : kCandidates) {
    const absl::Duration least = 2 * kFewestRounds * (tokens / kWarmUpTokens) * few;
    if (tokens > most_tokens || least > deadline - now()) continue;
    const RowTrial trial = measure(tokens);
    plan.trials.insert(plan.trials.begin(), trial);
    if (trial.rows > kMargin * trial.team) break;
    plan.rows_from = tokens;
  }
  return plan;
}

}  // namespace attendant
