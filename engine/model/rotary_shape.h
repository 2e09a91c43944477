// RotaryShape: rotary position embeddings, Su et al. 2021 (RoPE).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/layer_kinds.h"

namespace attendant {

// Rotates pairs of the first columns of each head of queries and keys by their position.
struct RotaryShape {
  std::vector<double> frequencies = {};  // of each pair, in radians per position
  float amplitude = 1;                   // multiplies the rotated columns
  RotaryPairs pairs = RotaryPairs::kHalves;

  // The number of rotated columns per head.
  int64_t width() const { return 2 * static_cast<int64_t>(frequencies.size()); }

  bool operator==(const RotaryShape&) const = default;
};

// Returns the frequencies base^(-2 j / width) / stretch of the pairs j in [0, width / 2).
std::vector<double> RotaryFrequencies(int64_t width, float base, float stretch = 1);

}  // namespace attendant
