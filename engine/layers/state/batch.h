// PackedBatch: the sequences that one run computes together. RunObserver: receives intermediate
// results of a run.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/model/model_description.h"

namespace attendant {

// Gates on the heads of one sequence: the output of head h in layer i of the span is multiplied by
// data[i * layer_stride + h], which is in [0, 1]. h is the head's number in the checkpoint, even if
// other heads are pruned. With a stride of 0 all layers have the same gates. Does not own `data`.
struct HeadGates {
  const float* data = nullptr;  // if null, all gates are 1
  int64_t layer_stride = 0;
};

// Sequences back to back, without padding: sequence i has the rows [cu_seqlens[i], cu_seqlens[i +
// 1]) of the run's input, and T = cu_seqlens.back(). Does not own its spans, which must outlive the
// run.
struct PackedBatch {
  absl::Span<const int32_t> cu_seqlens;  // [sequences + 1], non-decreasing from 0
  // [sequences]. May be empty, and entries may be null, for sequences without a bias.
  absl::Span<const AttentionBias* const> bias;
  // [T], the index of each token in its padded row, ascending within a sequence. If empty, it is 0,
  // 1, … in each sequence. Biases, windows and relative positions depend on it.
  absl::Span<const int32_t> positions = {};
  // The rows that are needed after the last layer of a span, ascending. The other rows of the
  // result are undefined. If empty, all rows are needed.
  absl::Span<const int32_t> selected_rows = {};
  // [sequences], the keys and values that each sequence attends to, which
  // EncoderRun::ProjectCrossKv returned for the same layer. If empty, sequences attend to
  // themselves. Only for EncoderRun::Attend.
  absl::Span<const CrossKv> cross_kv = {};
  absl::Span<const HeadGates> head_gates = {};  // [sequences], or empty if all gates are 1
  // [sequences], the state of each sequence that is computed chunk by chunk: LayerStateSize floats
  // (engine/model/model_facts.h) per layer of the span. If not empty, rows that are not selected
  // are computed too. Only for models that WhyNotInChunks (engine/model/model_facts.h) accepts.
  absl::Span<const LinearState> states = {};

  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
};

// Returns INVALID_ARGUMENT if `batch` is not a valid packed batch or has inputs that the model does
// not support, and RESOURCE_EXHAUSTED if it has more than `max_tokens` tokens or a sequence attends
// to more than `max_tokens` rows of cross_kv.
absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens);

// The source rows of a CrossKv: key i is projected from row first_key + i of key_input(), and value
// i from row first_value + i of value_input().
struct CrossKvRange {
  int64_t first_key;
  int64_t first_value;  // equal to first_key if keys and values have the same source rows
  int64_t rows;
};

// The part of a layer's attention block that EncoderRun::Attend computes.
enum class AttendStage { kContext, kProjected, kBlock };

// Receives intermediate results of a run. All calls are made on the thread that called the run. The
// default implementations request nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Returns the buffer for the attention probabilities of this sequence in this layer, [H, length,
  // keys], or null if they are not requested.
  virtual float* ProbabilitiesTarget(int64_t /*layer*/, int64_t /*sequence*/) { return nullptr; }

  // Called in a layer for which probabilities are requested, unless it attends to cross_kv, with
  // the values of its attention, [T, K Dv], which are valid only during the call.
  virtual void OnValues(int64_t /*layer*/, MatrixView<const float> /*values*/) {}

  // Called after a layer, with its output [T, E], which is valid only during the call.
  virtual void AfterLayer(int64_t /*layer*/, MatrixView<const float> /*hidden_states*/) {}

  // Called between two layers. If it returns false, the run stops and returns CANCELLED.
  virtual bool WantsMore() { return true; }
};

// Writes an input vector of a head or receives an output vector. Vector `row` is a pooled sequence
// or a token.
using HeadRowFunction = absl::FunctionRef<void(int64_t row, absl::Span<float> values)>;

// A sequence for EncoderRun::WeighVocabulary. Does not own its spans.
struct VocabularySequence {
  int64_t first_row;  // of the hidden states
  int64_t rows;
  absl::Span<float> weights;           // [V], the result
  absl::Span<const int32_t> ids = {};  // [rows], token ids; read only by a lexical head
};

}  // namespace attendant
