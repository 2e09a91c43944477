// The widths of the linear layers of an encoder layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/layer_parts.h"
#include "engine/model/model_description.h"

namespace attendant::bench {

// From x [., in] to y [., out].
struct Width {
  int64_t in;
  int64_t out;
};

// Returns the widths of the products that the engine computes: the fused QKV (with grouped queries,
// of fewer keys and values), the output, and the feed-forward block's two or, with a gate, three.
inline std::vector<Width> ProductWidths(const LayerShape& layer) {
  std::vector<Width> widths;
  std::string linear;
  for (const ModelPart& part : ListParts(layer)) {
    if (part.kind != PartKind::kLinear) continue;
    if (widths.empty() || part.linear != linear) widths.push_back({part.in.value(), 0});
    widths.back().out += part.out.value();
    linear = part.linear;
  }
  return widths;
}

}  // namespace attendant::bench
