#include "tests/reference/token_convolution.h"

namespace attendant::reference {

std::vector<double> Convolve(const TokenConvolution& convolution, const std::vector<double>& x,
                             const std::vector<int32_t>& places) {
  const auto& [width, groups, taps, weight, bias] = convolution;
  const int64_t tokens = static_cast<int64_t>(places.size()), columns = width / groups;
  std::vector<double> y(x.size());
  for (int64_t p = 0; p < tokens; ++p) {
    for (int64_t out = 0; out < width; ++out) {
      double sum = bias[out];
      for (int64_t q = 0; q < tokens; ++q) {
        const int64_t tap = places[q] - places[p] + taps / 2;
        if (tap < 0 || tap >= taps) continue;
        for (int64_t in = 0; in < columns; ++in) {
          sum += weight[(out * columns + in) * taps + tap] *
                 x[q * width + out / columns * columns + in];
        }
      }
      y[p * width + out] = sum;
    }
  }
  return y;
}

}  // namespace attendant::reference
