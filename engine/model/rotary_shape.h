// The angles of rotary positions: Su et al. 2021 (RoPE).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The turning of the first columns of each head of queries and keys, in pairs, by their positions.
struct RotaryShape {
  std::vector<double> frequencies = {};  // of each pair: radians from one position to the next
  float amplitude = 1;                   // multiplies what is turned
  RotaryPairs pairs = RotaryPairs::kHalves;

  // The columns of each head that are turned.
  int64_t width() const { return 2 * static_cast<int64_t>(frequencies.size()); }

  bool operator==(const RotaryShape&) const = default;
};

// Returns the frequencies of `width` / 2 pairs: that of pair j is base^(-2 j / width) / stretch.
std::vector<double> RotaryFrequencies(int64_t width, float base, float stretch = 1);

// INVALID_ARGUMENT unless heads of `key_width` columns can be turned so.
absl::Status CheckRotary(const RotaryShape& rotary, int64_t key_width);

}  // namespace attendant
