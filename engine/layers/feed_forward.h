// The position-wise feed-forward block: Vaswani et al. 2017, section 3.3; with a gate, Shazeer
// 2020.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class FeedForward {
 public:
  static absl::StatusOr<FeedForward> Load(const std::string& prefix, const LayerShape& shape,
                                          WeightLoader& loader);

  // activation(x W1^T + b1) W2^T + b2, or (activation(x Wg^T + bg) * (x W1^T + b1)) W2^T + b2:
  // [PaddedRows(T), E] in the branch buffer, which may be where x is.
  MatrixView<float> Forward(const LinearInput& x, RunState& run) const;

  // What reads x: see RunState::Prepare.
  const PackedLinear* entry() const { return &in_; }

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const { return in_.bytes() + out_.bytes() + (gate_ ? gate_->bytes() : 0); }

 private:
  FeedForward(Activation activation, PackedLinear in, PackedLinear out)
      : activation_(activation), in_(std::move(in)), out_(std::move(out)) {}

  LinearPair Pair() const { return {in_, activation_, out_}; }
  // The first half of a gated block: x [rows, E] to inner [rows, F], ready for the second half.
  PreparedRows Expand(const LinearInput& x, MatrixView<float> inner, RunState& run) const;

  Activation activation_;
  std::optional<PackedLinear> gate_;  // [F, E]
  PackedLinear in_;                   // [F, E]
  PackedLinear out_;                  // [E, F]
};

}  // namespace attendant
