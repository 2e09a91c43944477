// The learned keys and queries of distances that disentangled attention scores tokens against.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/relative_scores.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// The table of distances that all layers project, with its norm: [PaddedRows(position rows), E],
// the rows beyond the last zero. Read once for a model of disentangled attention.
absl::StatusOr<AlignedBuffer<float>> ReadDistanceTable(const LayerShape& shape,
                                                       WeightLoader& loader);

// Of one layer. Immutable, thread-safe.
class PositionProjections {
 public:
  PositionProjections() = default;

  // What the layer's projections make of `table`, which ReadDistanceTable gave: its own for
  // distances, which are read and forgotten, or those of its tokens, `qkv`. Computed as the layer
  // computes, once: no run waits for it.
  static absl::StatusOr<PositionProjections> Load(const std::string& prefix,
                                                  const LayerShape& shape, const PackedLinear& qkv,
                                                  const AlignedBuffer<float>& table,
                                                  WeightLoader& loader);

  // Without the rows of the distances.
  RelativeScores view() const;
  int64_t bytes() const { return keys_.bytes() + queries_.bytes(); }

 private:
  PositionProjections(int64_t rows, int64_t width) : rows_(rows), width_(width) {}

  absl::Status Project(const std::string& name, const AlignedBuffer<float>& table,
                       WeightLoader& loader, SharedBuffer<float>& target) const;
  void ProjectWith(const PackedLinear& linear, const AlignedBuffer<float>& table,
                   int64_t first_column, SharedBuffer<float>& target) const;

  int64_t rows_ = 0;
  int64_t width_ = 0;            // H Dk
  SharedBuffer<float> keys_;     // [rows, H Dk], or of size 0: queries are not scored
  SharedBuffer<float> queries_;  // the same of keys
};

}  // namespace attendant
