#include "engine/model/rotary_shape.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace attendant {

std::vector<double> RotaryFrequencies(int64_t width, float base, float stretch) {
  std::vector<double> frequencies(width / 2);
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double exponent = 2 * static_cast<double>(j) / static_cast<double>(width);
    frequencies[j] = std::pow(static_cast<double>(base), -exponent) / stretch;
  }
  return frequencies;
}

absl::Status CheckRotary(const RotaryShape& rotary, int64_t key_width) {
  std::string problem;
  if (rotary.width() < 2 || rotary.width() > key_width) {
    problem = absl::StrCat("expected 2..", key_width, " rotary columns (at most key_width); got ",
                           rotary.width());
  }
  for (const double frequency : rotary.frequencies) {
    if (frequency >= 0 && std::isfinite(frequency)) continue;
    problem = absl::StrCat("expected finite rotary frequencies of at least 0; got ", frequency);
  }
  if (!(rotary.amplitude > 0) || !std::isfinite(rotary.amplitude)) {
    problem = absl::StrCat("expected a positive, finite rotary amplitude; got ", rotary.amplitude);
  }
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model description: ", problem));
}

}  // namespace attendant
