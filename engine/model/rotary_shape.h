// RotaryShape: rotary position embeddings, Su et al. 2021 (RoPE).
#pragma once

#include <cmath>
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
inline std::vector<double> RotaryFrequencies(int64_t width, float base, float stretch = 1) {
  std::vector<double> frequencies(width / 2);
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double exponent = 2 * static_cast<double>(j) / static_cast<double>(width);
    frequencies[j] = std::pow(static_cast<double>(base), -exponent) / stretch;
  }
  return frequencies;
}

}  // namespace attendant
