// PositionProjections: the keys and queries of relative positions that disentangled attention
// scores tokens against, projected from a learned table: He et al. 2021 (DeBERTa), section 3.1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"
#include "engine/model/model_description.h"

namespace attendant {

// Reads the relative position embeddings, which all layers project, and applies their norm. Returns
// [position rows, E], in memory for PaddedRows of them, or the errors of `loader`. Called once for
// a model with disentangled attention.
absl::StatusOr<AlignedBuffer<float>> ReadDistanceTable(const LayerShape& shape,
                                                       WeightLoader& loader);

// The projections of one layer. Immutable and thread-safe.
class PositionProjections : public AttentionExtra {
 public:
  // Projects `table`, which ReadDistanceTable returned, with the layer's projections of relative
  // positions, which are then freed, or with its token projections `qkv` if they are shared. Runs
  // once at load time, in the compute mode of the layer. Returns the errors of `loader`.
  static absl::StatusOr<PositionProjections> Load(const std::string& prefix,
                                                  const LayerShape& shape, const PackedLinear& qkv,
                                                  const AlignedBuffer<float>& table,
                                                  WeightLoader& loader);

  void AddTo(AttentionInput& input, const LayerRun& run) const override;

 private:
  PositionProjections(int64_t rows, int64_t width) : rows_(rows), width_(width) {}

  // Returns the products of the table with the columns of `linear` from `first_column` on.
  SharedBuffer<float> Project(const PackedLinear& linear, const AlignedBuffer<float>& table,
                              int64_t first_column, WeightLoader& loader) const;

  int64_t rows_ = 0;
  int64_t width_ = 0;            // H * Dk
  SharedBuffer<float> keys_;     // [rows, H * Dk]; empty if queries are not scored
  SharedBuffer<float> queries_;  // [rows, H * Dk]; empty if keys are not scored
};

}  // namespace attendant
