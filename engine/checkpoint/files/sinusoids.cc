#include "engine/checkpoint/files/sinusoids.h"

#include <cmath>
#include <utility>

#include "engine/checkpoint/files/computed_weights.h"

namespace attendant {

void FillSinusoids(const SinusoidTable& table, absl::Span<float> target) {
  const bool interleaved = table.kind == Sinusoids::kInterleaved;
  const int64_t width = table.width, half = width / 2;
  const double steps = table.kind == Sinusoids::kHalves ? static_cast<double>(half - 1)
                                                        : static_cast<double>(width) / 2;
  for (size_t at = 0; at < target.size(); ++at) {
    const int64_t position = static_cast<int64_t>(at) / width;
    const int64_t j = static_cast<int64_t>(at) % width;
    const int64_t i = interleaved ? j / 2 : j % half;
    const double angle =
        static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / steps);
    const bool is_sine = interleaved ? j % 2 == 0 : j < half;
    target[at] = static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle));
    if (position == table.zero_row) target[at] = 0;
  }
}

std::unique_ptr<WeightSource> WithSinusoids(const std::string& name, const SinusoidTable& table,
                                            std::unique_ptr<WeightSource> weights) {
  if (table.kind == Sinusoids::kNone) return weights;
  ComputedWeights computed;
  computed[name] = {table.positions * table.width,
                    [table](WeightSource&, absl::Span<float> target) {
                      FillSinusoids(table, target);
                      return absl::OkStatus();
                    }};
  return WithComputed(std::move(computed), std::move(weights));
}

}  // namespace attendant
