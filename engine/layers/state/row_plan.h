// The division of a layer's products among the threads of an instance, and the timing that chooses
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace attendant {

// Either the team goes through each product together, or each thread computes its own share of the
// rows, with all columns, and has the same rows in every product and norm of a layer. The second
// way reads every weight once per thread but leaves the rows in the caches of the thread; it is
// faster, if at all, with many rows. Both give the same bits.
enum class RowPolicy {
  kTimed,  // the faster way by measurement, depending on T
  kTeam,
  kRows,
};

// The best times of both ways for one number of tokens.
struct RowTrial {
  int64_t tokens;
  absl::Duration team;
  absl::Duration rows;

  double speedup() const { return absl::FDivDuration(team, rows); }
};

struct RowPlan {
  // From this number of tokens on each thread has rows of its own; 0 if it never has.
  int64_t rows_from = 0;
  std::vector<RowTrial> trials = {};  // ascending by tokens; empty if nothing was timed
};

// The largest number of tokens that TimeRowPlans runs.
inline constexpr int64_t kMostTrialTokens = 1024;

// Times `run(tokens, by_rows)` by the clock `now` for a few numbers of tokens up to `most_tokens`,
// the largest first, alternating between both ways, for about a quarter of a second in all. Numbers
// that would take too long are left out. Threads get rows of their own from the smallest number on
// at which that, and at all larger ones too, loses no more than measurement noise.
RowPlan TimeRowPlans(int64_t most_tokens, absl::FunctionRef<void(int64_t tokens, bool by_rows)> run,
                     absl::FunctionRef<absl::Time()> now);

}  // namespace attendant
