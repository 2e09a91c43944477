#include "engine/model/weight_source.h"

#include <utility>

namespace attendant {

std::vector<WeightSpec> WeightsOf(const ModelPart& part) {
  const int64_t out = part.groups * part.out.value(), in = part.in.value();
  std::vector<int64_t> shape = {out, in};
  if (part.taps > 0) shape = {out, in / part.taps, part.taps};
  switch (part.kind) {
    case PartKind::kScale:
    case PartKind::kVector:
      return {{part.name, {out}}};
    case PartKind::kTable:
      return {{part.name, std::move(shape)}};
    case PartKind::kNorm:
      shape = {out};
      break;
    default:
      break;
  }
  std::vector<WeightSpec> weights;
  if (in > 0) weights.push_back({part.name + ".weight", std::move(shape)});
  if (part.has_bias) weights.push_back({part.name + ".bias", {out}, /*optional=*/true});
  return weights;
}

std::vector<WeightSpec> ListWeights(const ModelDescription& description) {
  std::vector<WeightSpec> weights;
  for (const ModelPart& part : ListParts(description)) {
    for (WeightSpec& weight : WeightsOf(part)) weights.push_back(std::move(weight));
  }
  return weights;
}

}  // namespace attendant
