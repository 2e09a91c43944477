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
  const AttentionBlockShape& attention = layer.attention;
  const int64_t width = layer.feed_forward.width;
  return {{layer.hidden_size, attention.heads * (2 * attention.key_width + attention.value_width)},
          {layer.context_width(), layer.hidden_size},
          {layer.hidden_size, width},
          {width, layer.hidden_size}};
}

}  // namespace attendant::bench
