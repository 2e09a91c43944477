// The arithmetic of attention: some queries of a head, or of heads that share keys and values,
// against all keys of their sequence, on one thread.
#pragma once

#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// Attends 1 to kMostSharing heads, which read the same keys and values for the same queries of a
// sequence and differ in what belongs to a head alone; what is packed of keys and values is packed
// once. heads.size() * RoundUpToPanel(queries) <= kMaxQueries. Returns how many queries of all
// heads were fully masked: had no key left.
int64_t AttendHeads(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch);

}  // namespace attendant
