// The input of one run of the engine, and the interface to observe the run.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// The gates of one sequence, factors in [0, 1] on the outputs of its heads. Head h in layer i of
// the span has the gate data[i * layer_stride + h], where h is its number in the checkpoint,
// whether or not other heads have been pruned. With a stride of 0 all layers have the same gates.
// Does not own the data.
struct HeadGates {
  const float* data = nullptr;  // null if all heads count fully
  int64_t layer_stride = 0;
};

// Sequences back to back, without padding rows: sequence i has the rows from cu_seqlens[i] up to
// cu_seqlens[i + 1], which is not included, and T = cu_seqlens.back(). Does not own what it refers
// to.
struct PackedBatch {
  absl::Span<const int32_t> cu_seqlens;  // [sequences + 1], ascending from 0
  // [sequences], with null for sequences without a bias; empty if no sequence has one.
  absl::Span<const AttentionBias* const> bias;
  // [T]: the index of each token in its padded sequence, ascending in a sequence; empty for 0, 1, …
  // in each. Biases, windows and relative positions use it.
  absl::Span<const int32_t> positions = {};
  // The rows that are used after the last layer of a span, ascending; empty if all are. The content
  // of the other rows is then undefined.
  absl::Span<const int32_t> wanted_rows = {};
  // [sequences]: the keys and values to attend to, made by EncoderRun::ProjectCrossKv for the same
  // layer; empty if each sequence attends to itself. For Attend alone.
  absl::Span<const CrossKv> cross_kv = {};
  // [sequences]; empty if no sequence has gates.
  absl::Span<const HeadGates> head_gates = {};
  // [sequences]: the states of sequences that come in parts, with LayerStateSize floats
  // (model_facts.h) for each layer of the span, from its first on; empty if no sequence comes in
  // parts. Rows that are not wanted are then computed too. Only for models that WhyNotInParts
  // (model_facts.h) gives no reason against.
  absl::Span<const LinearState> states = {};

  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
};

// Rows of a run's key_input() and value_input() that a CrossKv is made of: row i of either makes
// key and value i.
struct CrossKvRange {
  int64_t first_key;
  int64_t first_value;  // first_key if the same rows make both
  int64_t rows;
};

// An observer of a run. All calls come from the thread that called the run. The default methods do
// nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Returns where to write the attention probabilities [H, length, keys] of this sequence in this
  // layer, or null if they are not wanted.
  virtual float* ProbabilitiesTarget(int64_t /*layer*/, int64_t /*sequence*/) { return nullptr; }

  // Called in a layer whose probabilities are wanted, unless it attends to memories, with the
  // values of its attention [T, heads x value width]. They are valid until the call returns.
  virtual void OnValues(int64_t /*layer*/, MatrixView<const float> /*values*/) {}

  // Called after a layer with its output [T, E], which is valid until the call returns.
  virtual void AfterLayer(int64_t /*layer*/, MatrixView<const float> /*hidden_states*/) {}

  // Called between two layers; false abandons the run, which then returns CANCELLED.
  virtual bool WantsMore() { return true; }
};

}  // namespace attendant
