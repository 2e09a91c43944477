// AttentionPooling: pools a sequence with a learned query that attends to all of its rows (SigLIP).
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. Rows are not projected to keys and values. The query is the same for
// every sequence, so its product with the key projection, [H, E], is computed at load time. The key
// bias adds the same number to all scores and has no effect. The probabilities of a head sum to 1,
// so the value projection is applied to the weighted mean of the rows.
class AttentionPooling {
 public:
  // `name` is the name of the head. `layer` states the width of the rows and the number of heads.
  AttentionPooling(const std::string& name, const LayerShape& layer, WeightLoader& loader);

  // Computes softmax(q K^T / sqrt(E / H)) V with the heads side by side, [E], for one sequence of
  // at least one row. Sums are float64.
  void Pool(MatrixView<const float> hidden_states, absl::Span<float> target) const;

 private:
  int64_t heads_;
  SharedBuffer<float> queries_;     // [H, E], scaled; the product with a row is a score
  SharedBuffer<float> values_;      // [E, E], transposed
  SharedBuffer<float> value_bias_;  // [E], or empty
};

}  // namespace attendant
