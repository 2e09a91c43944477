// Multi-head self-attention and cross-attention: Vaswani et al. 2017, section 3.2.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/position_projections.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class MultiHeadAttention {
 public:
  // Reads the layer's input projections, into one fused one if they take the same rows, then its
  // output projection, as far as it has them. `distances` is the table of ReadDistanceTable, for
  // disentangled attention.
  static absl::StatusOr<MultiHeadAttention> Load(const std::string& prefix, const LayerShape& shape,
                                                 WeightLoader& loader,
                                                 const AlignedBuffer<float>& distances = {});

  // The context layer, softmax(Q K^T scale) V with the heads side by side: [PaddedRows(T), C] in
  // the context buffer. x: [PaddedRows(T), E]; `outside`: what values are made from if they come
  // from outside a bottleneck, else not looked at.
  MatrixView<float> Context(const LinearInput& x, MatrixView<const float> outside,
                            RunState& run) const;

  // The one product that reads x, or null: see RunState::Prepare.
  const PackedLinear* entry() const {
    return inputs_.size() == 1 ? &inputs_.front().linear : nullptr;
  }

  // Keys and values of cross-attention, in the buffers that they are projected from and to.
  CrossKv ProjectCrossKv(const CrossKvRows& rows, RunState& run) const;

  // Context Wo^T + bo: [PaddedRows(T), output width] in the branch buffer. Without an output
  // projection this is the context itself.
  MatrixView<float> Project(MatrixView<float> context, RunState& run) const;

  // Those that the loader's source has; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader);

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  // An input projection, or all of them fused, and its first column of queries, keys and values
  // side by side.
  struct Input {
    int64_t column;
    PackedLinear linear;
  };

  explicit MultiHeadAttention(const LayerShape& shape) : shape_(shape) {}

  absl::Status LoadInputs(const std::string& prefix, WeightLoader& loader);
  absl::Status LoadKind(const std::string& prefix, WeightLoader& loader);
  absl::Status LoadNorms(const std::string& prefix, WeightLoader& loader);
  absl::Status LoadOutput(const LinearPart& part, WeightLoader& loader);

  // Queries of the kept rows, or of those that are wanted, and keys and values of all unless they
  // attend to cross_kv, with positions in them.
  MatrixView<const float> ProjectInput(const LinearInput& x, MatrixView<const float> outside,
                                       RunState& run) const;

  // Whether it saves products to make queries of the wanted rows of x alone.
  bool CanNarrowQueries(MatrixView<const float> x, RunState& run) const;

  // Queries of the wanted rows of x. Keys and values that qkv holds in any rows may be lost.
  void ProjectWantedQueries(MatrixView<const float> x, MatrixView<float> qkv, RunState& run) const;

  // The columns [begin, end) of x's queries, keys and values, in these rows of y.
  void ProjectColumns(int64_t begin, int64_t end, const LinearInput& x, MatrixView<float> y,
                      RunState& run) const;

  LayerShape shape_;
  std::vector<Input> inputs_;                 // H (2 Dk + Dv) columns, less what is shared
  std::optional<PackedLinear> output_;        // [output width, C]
  SharedBuffer<float> bias_alone_;            // of a layer without heads; or of size 0
  std::optional<NormParameters> query_norm_;  // [H Dk]
  std::optional<NormParameters> key_norm_;    // [H Dk]
  PositionProjections positions_;
  SharedBuffer<float> score_weights_;  // [H Dk], or of size 0
  SharedBuffer<float> key_mixing_;     // [k, positions], or of size 0
  SharedBuffer<float> value_mixing_;   // the same
};

}  // namespace attendant
