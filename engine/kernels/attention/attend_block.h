// The arithmetic of attention: some queries of one head against all keys of their sequence, on one
// thread.
#pragma once

#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// Returns how many queries were fully masked: had no key left.
int64_t AttendBlock(const AttentionBlock& block, const AttentionScratch& scratch);

}  // namespace attendant
