// What one run of the engine works on.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// How much each head counts, for one sequence: head h of the span's layer i is times
// data[i * layer_stride + h], in [0, 1]. h is its number in the checkpoint, whether or not others
// have been pruned. A stride of 0: the same in all layers. Does not own.
struct HeadGates {
  const float* data = nullptr;  // null: each counts fully
  int64_t layer_stride = 0;
};

// Sequences back to back: sequence i has rows [cu_seqlens[i], cu_seqlens[i + 1]). T =
// cu_seqlens.back(). No padding row.
struct PackedBatch {
  absl::Span<const int32_t> cu_seqlens;  // [sequences + 1], ascending from 0
  absl::Span<const AttentionBias* const>
      bias;  // [sequences], entries may be null; or empty: none has one
  absl::Span<const int32_t> positions =
      {};  // [T]: index of each token in its padded row, ascending in a sequence; or
           // empty: 0, 1, … in each. Biases, windows and relative positions look at it
  // Rows that anybody looks at after the last layer of a span, ascending; or empty: all. The others
  // may then hold anything.
  absl::Span<const int32_t> wanted_rows = {};
  // [sequences]: what each attends to, made by EncoderRun::ProjectCrossKv for the same layer; or
  // empty: its own rows. For Attend alone.
  absl::Span<const CrossKv> cross_kv = {};
  absl::Span<const HeadGates> head_gates = {};  // [sequences]; or empty: none has any
  // [sequences], those of sequences that come in parts: for each layer of the span, from its first,
  // LayerStateSize floats (model_facts.h); or empty: none has any. Rows that are not wanted are
  // computed then, too. Of models that WhyNotInParts (model_facts.h) says nothing against.
  absl::Span<const LinearState> states = {};

  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
};

// Rows of a run's key_input() and value_input() that a CrossKv is made of: row i of either makes
// key and value i.
struct CrossKvRows {
  int64_t first_key;
  int64_t first_value;  // first_key if the same rows make both
  int64_t rows;
};

// Sees a run as it goes; all calls come from the running thread. The defaults look at nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Where the probabilities of this sequence in this layer shall go, [H, length, keys], or null:
  // not wanted.
  virtual float* ProbabilitiesTarget(int64_t /*layer*/, int64_t /*sequence*/) { return nullptr; }

  // In a layer whose probabilities are wanted, unless it attends to cross_kv: the values of its
  // attention [T, heads x value width], valid until the call returns.
  virtual void OnValues(int64_t /*layer*/, MatrixView<const float> /*values*/) {}

  // After a layer: its output [T, E], valid until the call returns.
  virtual void AfterLayer(int64_t /*layer*/, MatrixView<const float> /*hidden_states*/) {}

  // Asked between two layers; false abandons the run, which then returns CANCELLED.
  virtual bool WantsMore() { return true; }
};

}  // namespace attendant
