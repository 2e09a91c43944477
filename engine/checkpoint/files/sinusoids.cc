#include "engine/checkpoint/files/sinusoids.h"

#include <cmath>
#include <utility>

#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

class SinusoidWeights : public WeightSource {
 public:
  SinusoidWeights(std::string name, const SinusoidTable& table,
                  std::unique_ptr<WeightSource> weights)
      : name_(std::move(name)), table_(table), weights_(std::move(weights)) {}

  bool Has(absl::string_view name) const override { return name == name_ || weights_->Has(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    if (name != name_) return weights_->Read(name, target);
    const int64_t elements = table_.positions * table_.width;
    if (static_cast<int64_t>(target.size()) != elements) {
      return InvalidArgument("the sinusoids have ", elements, " elements, the target ",
                             target.size());
    }
    FillSinusoids(table_, target);
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const SinusoidTable table_;
  const std::unique_ptr<WeightSource> weights_;
};

}  // namespace

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

std::unique_ptr<WeightSource> WithSinusoids(std::string name, const SinusoidTable& table,
                                            std::unique_ptr<WeightSource> weights) {
  if (table.kind == Sinusoids::kNone) return weights;
  return std::make_unique<SinusoidWeights>(std::move(name), table, std::move(weights));
}

}  // namespace attendant
