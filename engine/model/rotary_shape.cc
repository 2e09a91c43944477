#include "engine/model/rotary_shape.h"

#include <cmath>

namespace attendant {

std::vector<double> RotaryFrequencies(int64_t width, float base, float stretch) {
  std::vector<double> frequencies(width / 2);
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double exponent = 2 * static_cast<double>(j) / static_cast<double>(width);
    frequencies[j] = std::pow(static_cast<double>(base), -exponent) / stretch;
  }
  return frequencies;
}

}  // namespace attendant
