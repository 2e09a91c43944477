// Computes the attention of some queries of one head, or of several heads that share keys and
// values, to all keys of their sequence, on one thread.
#pragma once

#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// Computes 1 to kMostSharing heads. They must have the same keys, values and positions, and may
// differ in queries, biases and outputs; keys and values are packed only once. Requires
// heads.size() * RoundUpToPanel(queries) <= kMaxQueries. Returns the number of fully masked queries
// of all heads.
int64_t AttendHeads(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch);

}  // namespace attendant
