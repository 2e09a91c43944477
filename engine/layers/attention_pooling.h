// AttentionPooling: pools a sequence by a learned query, which attends to all of its rows (SigLIP).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe. It makes no keys or values of rows. The query is the same for every
// sequence, so its product with the key projection is computed while loading, [H, E], and the key
// bias, which adds the same to all scores, has no effect. A head's probabilities sum up to 1, so
// the value projection is applied to the weighted mean of the rows.
class AttentionPooling {
 public:
  // `name` is the head's name; `layer` has the width of the rows and the number of heads.
  static absl::StatusOr<AttentionPooling> Load(const std::string& name, const LayerShape& layer,
                                               WeightLoader& loader);

  // Writes softmax(q K^T / sqrt(E / H)) V with the heads side by side, [E], for one sequence of one
  // or more rows, with float64 sums. NaN and infinities stay in this sequence.
  void Pool(MatrixView<const float> hidden_states, absl::Span<float> target) const;

  int64_t bytes() const { return queries_.bytes() + values_.bytes() + value_bias_.bytes(); }

 private:
  int64_t heads_ = 0;
  SharedBuffer<float> queries_;     // [H, E], scaled: its product with a row is a score
  SharedBuffer<float> values_;      // [E, E], transposed: the inputs of a column side by side
  SharedBuffer<float> value_bias_;  // [E], or empty
};

}  // namespace attendant
