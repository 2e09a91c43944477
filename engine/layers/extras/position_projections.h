// PositionProjections: the projections of the table of distances in disentangled attention, which
// are the learned keys and queries of distances that tokens are scored against: He et al. 2021
// (DeBERTa), section 3.1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"
#include "engine/model/model_description.h"

namespace attendant {

// Reads the table of distances that all layers project, after its norm: [PaddedRows(position rows),
// E] with zeros in the padding rows. Called once for a model with disentangled attention.
absl::StatusOr<AlignedBuffer<float>> ReadDistanceTable(const LayerShape& shape,
                                                       WeightLoader& loader);

// The projections of one layer. Immutable and thread-safe.
class PositionProjections : public AttentionExtra {
 public:
  // Projects `table`, which ReadDistanceTable returned, with the layer's own projections for
  // distances, which are not kept, or with those of its tokens, `qkv`. Computes in the compute mode
  // of the layer, once while loading, so that runs do not need to.
  static absl::StatusOr<PositionProjections> Load(const std::string& prefix,
                                                  const LayerShape& shape, const PackedLinear& qkv,
                                                  const AlignedBuffer<float>& table,
                                                  WeightLoader& loader);

  void AddTo(AttentionInput& input, const LayerRun& run) const override;
  int64_t bytes() const override { return keys_.bytes() + queries_.bytes(); }

 private:
  PositionProjections(int64_t rows, int64_t width) : rows_(rows), width_(width) {}

  absl::Status Project(const std::string& name, const AlignedBuffer<float>& table,
                       WeightLoader& loader, SharedBuffer<float>& target) const;
  void ProjectWith(const PackedLinear& linear, const AlignedBuffer<float>& table,
                   int64_t first_column, SharedBuffer<float>& target) const;

  int64_t rows_ = 0;
  int64_t width_ = 0;            // H * Dk
  SharedBuffer<float> keys_;     // [rows, H * Dk]; empty if queries are not scored
  SharedBuffer<float> queries_;  // [rows, H * Dk]; empty if keys are not scored
};

}  // namespace attendant
