// What a model makes of the rows of patches or frames that it is given.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class Front {
 public:
  static absl::StatusOr<Front> Load(const FrontShape& shape, const LayerShape& layer,
                                    WeightLoader& loader);

  // Brings as many features, from the first row of embedded() on, to the rows of `target` [rows,
  // E]; the model has that linear layer.
  void Project(MatrixView<float> target, RunState& run) const;

  // Makes what enters layer 0 of one sequence. rows: [own_rows + features, E], the features in
  // place; positions: one for each of them.
  void Apply(absl::Span<const int32_t> positions, MatrixView<float> rows, RunState& run) const;

  // Those that the loader's source has; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader);

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  FrontShape shape_;
  std::optional<PackedLinear> projection_;  // [E, feature_width]
  SharedBuffer<float> own_rows_;            // [own_rows, E], positions added
  SharedBuffer<float> positions_;           // [features, E], or of size 0
  std::optional<NormParameters> norm_;
};

}  // namespace attendant
