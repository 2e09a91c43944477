// PackedBatch: the sequences that one run of the engine computes. RunObserver: watches a run.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// Gates on the heads of one sequence: the output of head h in layer i of the span is multiplied by
// data[i * layer_stride + h], which is in [0, 1]. h is the head's number in the checkpoint, whether
// or not other heads have been pruned. A stride of 0 gives all layers the same gates. Does not own
// them.
struct HeadGates {
  const float* data = nullptr;  // null: all gates are 1
  int64_t layer_stride = 0;
};

// Sequences back to back, without padding: sequence i has the rows [cu_seqlens[i], cu_seqlens[i +
// 1]) of the run's input, and T = cu_seqlens.back(). Does not own what it refers to, which must
// live until the run returns.
struct PackedBatch {
  absl::Span<const int32_t> cu_seqlens;  // [sequences + 1], ascending from 0
  // [sequences], entries may be null; or empty: no sequence has a bias.
  absl::Span<const AttentionBias* const> bias;
  // [T]: the index of each token in its padded row, ascending within a sequence; or empty: 0, 1, …
  // in each. Biases, windows and relative positions depend on it.
  absl::Span<const int32_t> positions = {};
  // The rows that are needed after the last layer of a span, ascending; or empty: all. The other
  // rows of the result may then hold anything.
  absl::Span<const int32_t> wanted_rows = {};
  // [sequences]: the keys and values that each sequence attends to, made by
  // EncoderRun::ProjectCrossKv for the same layer; or empty: its own. Only for EncoderRun::Attend.
  absl::Span<const CrossKv> cross_kv = {};
  absl::Span<const HeadGates> head_gates = {};  // [sequences]; or empty: no sequence has gates
  // [sequences]: the states of sequences that come in parts, each of LayerStateSize floats
  // (engine/model/model_facts.h) for each layer of the span, from its first; or empty: no sequence
  // comes in parts. With states, rows that are not wanted are computed too. Only for models to
  // which WhyNotInChunks (engine/model/model_facts.h) has no objection.
  absl::Span<const LinearState> states = {};

  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
};

// The rows of a run's key_input() and value_input() that a CrossKv is made of: key i is made of row
// first_key + i, and value i of row first_value + i.
struct CrossKvRange {
  int64_t first_key;
  int64_t first_value;  // equal to first_key if the same rows make both
  int64_t rows;
};

// The part of a layer's attention block that EncoderRun::Attend computes.
enum class AttendStage { kContext, kProjected, kBlock };

// Receives what a run makes on its way. All calls come from the thread that runs. The defaults want
// nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Returns room for the probabilities of this sequence in this layer, [H, length, keys], or null
  // if they are not wanted.
  virtual float* ProbabilitiesTarget(int64_t /*layer*/, int64_t /*sequence*/) { return nullptr; }

  // Called in a layer whose probabilities are wanted, unless it attends to cross_kv, with the
  // values of its attention [T, K Dv], which are valid until the call returns.
  virtual void OnValues(int64_t /*layer*/, MatrixView<const float> /*values*/) {}

  // Called after a layer, with its output [T, E], which is valid until the call returns.
  virtual void AfterLayer(int64_t /*layer*/, MatrixView<const float> /*hidden_states*/) {}

  // Called between two layers. False abandons the run, which then returns CANCELLED.
  virtual bool WantsMore() { return true; }
};

// A sequence that EncoderRun::WeighVocabulary makes a vector of. Does not own the vector.
struct VocabularySequence {
  int64_t first_row;  // of the hidden states
  int64_t rows;
  absl::Span<float> weights;  // [V], for the result
};

}  // namespace attendant
