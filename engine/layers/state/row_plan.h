// How the threads of an instance divide the products of a layer, and how that is chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace attendant {

// The team goes through each product together, or each thread computes its own share of the rows,
// all columns of them, and has the same rows in every product and norm of a layer. The second reads
// every weight once a thread, and leaves the rows in the thread's own caches: it wins, if at all,
// with many rows. No bit of a result depends on it.
enum class RowPolicy {
  kTimed,  // what is faster here and now, by T
  kTeam,
  kRows,
};

// One number of tokens computed both ways: the best times.
struct RowTrial {
  int64_t tokens;
  absl::Duration team;
  absl::Duration rows;

  double speedup() const { return absl::FDivDuration(team, rows); }
};

struct RowPlan {
  // From this T on each thread has rows of its own; 0: never.
  int64_t rows_from = 0;
  std::vector<RowTrial> trials = {};  // ascending by tokens; empty: nothing was timed
};

// TimeRowPlans runs no more tokens than that.
inline constexpr int64_t kMostTrialTokens = 1024;

// Times `run(tokens, by_rows)` by the clock `now`: a few numbers of tokens up to `most_tokens`, the
// largest first, each in both ways by turns, for about a quarter of a second in all. Rows from the
// smallest number on that gains more than noise there and at every larger one. Numbers that would
// take too long are left out.
RowPlan TimeRowPlans(int64_t most_tokens, absl::FunctionRef<void(int64_t tokens, bool by_rows)> run,
                     absl::FunctionRef<absl::Time()> now);

}  // namespace attendant
