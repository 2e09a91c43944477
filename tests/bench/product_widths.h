// The widths of the linear layers of an encoder layer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_description.h"

namespace attendant::bench {

// From x [., in] to y [., out].
struct Width {
  int64_t in;
  int64_t out;
};

// Returns those of the fused QKV, the output and both feed-forward products.
inline std::vector<Width> ProductWidths(const LayerShape& layer) {
  return {{layer.hidden_size, layer.heads * (2 * layer.key_width + layer.value_width)},
          {layer.context_width(), layer.hidden_size},
          {layer.hidden_size, layer.feed_forward_width},
          {layer.feed_forward_width, layer.hidden_size}};
}

}  // namespace attendant::bench
