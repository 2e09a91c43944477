// The split of a layer's products among the threads of an instance, and the measurement that
// chooses it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace attendant {

// Work is split by panel, so that the team shares the blocks of each product, or by rows, so that
// each thread computes all columns of its own rows, the same ones in every product and norm of a
// layer. Splitting by rows keeps rows in the caches of their thread but reads every weight once per
// thread, so it is faster only with many rows, if at all. Both give the same bits.
enum class RowPolicy {
  kTimed,  // the faster one, measured for several T
  kTeam,   // always by panel
  kRows,   // always by rows
};

// The best measured times for one number of tokens.
struct RowTrial {
  int64_t tokens;
  absl::Duration team;  // split by panel
  absl::Duration rows;  // split by rows

  double speedup() const { return absl::FDivDuration(team, rows); }
};

struct RowPlan {
  // Batches of at least this number of tokens are split by rows. 0 means never.
  int64_t rows_from = 0;
  std::vector<RowTrial> trials = {};  // ascending by tokens; empty if nothing was measured
};

// The largest number of tokens that TimeRowPlans runs.
inline constexpr int64_t kMostTrialTokens = 1024;

// Measures `run(tokens, by_rows)` by the clock `now` for several numbers of tokens up to
// `most_tokens`, the largest first, alternating between the two ways. Takes about a quarter of a
// second and skips numbers of tokens that would take too long. The plan splits by rows from the
// smallest measured number on at which, as at all larger ones, this is not slower beyond
// measurement noise.
RowPlan TimeRowPlans(int64_t most_tokens, absl::FunctionRef<void(int64_t tokens, bool by_rows)> run,
                     absl::FunctionRef<absl::Time()> now);

}  // namespace attendant
