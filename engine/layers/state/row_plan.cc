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

class Stopwatch {
 public:
  Stopwatch(absl::FunctionRef<void(int64_t, bool)> run, absl::FunctionRef<absl::Time()> now)
      : run_(run), now_(now), deadline_(now() + kBudget) {}

  absl::Duration Time(int64_t tokens, bool by_rows) const {
    const absl::Time begin = now_();
    run_(tokens, by_rows);
    return now_() - begin;
  }

  absl::Duration left() const { return deadline_ - now_(); }

  // As many rounds as fit into half of the remaining time.
  RowTrial Try(int64_t tokens) const {
    RowTrial trial = {tokens, absl::InfiniteDuration(), absl::InfiniteDuration()};
    const absl::Duration leave = left() / 2;
    for (int round = 0; round < kMostRounds; ++round) {
      if (round >= kFewestRounds && left() < leave) break;
      for (const bool by_rows : {round % 2 == 0, round % 2 == 1}) {
        absl::Duration& best = by_rows ? trial.rows : trial.team;
        best = std::min(best, Time(tokens, by_rows));
      }
    }
    return trial;
  }

 private:
  absl::FunctionRef<void(int64_t, bool)> run_;
  absl::FunctionRef<absl::Time()> now_;
  const absl::Time deadline_;
};

}  // namespace

RowPlan TimeRowPlans(int64_t most_tokens, absl::FunctionRef<void(int64_t, bool)> run,
                     absl::FunctionRef<absl::Time()> now) {
  RowPlan plan;
  if (most_tokens < *std::min_element(std::begin(kCandidates), std::end(kCandidates))) return plan;
  const Stopwatch stopwatch(run, now);
  // The first run starts the threads and touches memory.
  const absl::Duration cold = stopwatch.Time(kWarmUpTokens, false);
  const absl::Duration few = std::min(cold, stopwatch.Time(kWarmUpTokens, false));
  for (const int64_t tokens : kCandidates) {
    const absl::Duration least = 2 * kFewestRounds * (tokens / kWarmUpTokens) * few;
    if (tokens > most_tokens || least > stopwatch.left()) continue;
    plan.trials.insert(plan.trials.begin(), stopwatch.Try(tokens));
    const RowTrial& trial = plan.trials.front();
    if (trial.rows > kMargin * trial.team) break;
    plan.rows_from = tokens;
  }
  return plan;
}

}  // namespace attendant
