// Convolution along tokens, from its definition.
#pragma once

#include <cstdint>
#include <vector>

namespace attendant::reference {

struct TokenConvolution {
  int64_t width;  // E
  int64_t groups;
  int64_t taps;
  std::vector<double> weight;  // [E, E / groups, taps]
  std::vector<double> bias;    // [E]
};

// Returns y [n, E] for tokens x [n, E] at these places: y_p = sum over t of W_t x_{p + t - taps /
// 2} + b, where x is zero at places without a token.
std::vector<double> Convolve(const TokenConvolution& convolution, const std::vector<double>& x,
                             const std::vector<int32_t>& places);

}  // namespace attendant::reference
