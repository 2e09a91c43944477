// Attention over a packed batch of sequences without padding: softmax, additive, linear and
// Linformer attention. Threads share the work by sequence, head and block of queries. The softmax
// is float32.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention/relative_scores.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/model/attention_pattern.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The sizes and options that all sequences of a batch share in one layer.
struct AttentionShape {
  int64_t heads;        // H
  int64_t key_width;    // Dk: head h owns columns [h Dk, (h+1) Dk) of queries and keys
  int64_t value_width;  // Dv: head h owns columns [h Dv, (h+1) Dv) of values and of the context
  float scale;          // multiplies the scores; 1/sqrt(Dk) for most models
  // K, a divisor of H: head h reads the keys and values of head floor(h K / H); 0: H. Fewer than H
  // only in kSoftmax.
  int64_t key_value_heads = 0;
  bool causal = false;  // keys after the query are masked; only in kSoftmax, without a pattern
  int64_t window = 0;   // keys further from the query than this are masked; 0: no window
  AttentionPattern pattern = {};  // the unit of the window, and what is visible beyond it
  int64_t relative_rows = 0;      // rows of AttentionInput::relative; 0: none
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t mixed_keys = 0;  // k of kLinformer
  // [H]: the number of each head, which indexes biases and gates; or empty: 0, 1, …
  absl::Span<const int64_t> head_numbers = {};
  // The number format of the products. In kBf16 and kInt8, queries, keys, values and probabilities
  // are rounded to bfloat16 if the CPU has units for it or the mode is emulated; otherwise they are
  // float32. Sums and softmax are float32.
  ComputeMode mode = {};

  int64_t kv_heads() const { return key_value_heads > 0 ? key_value_heads : heads; }
};

// A bias that is added to the scaled scores. The element for head number h, query position s and
// key position t is data[h * head_stride + s * query_stride + t * key_stride]; a stride of 0
// broadcasts, and strides may be negative. Minus infinity masks a pair. Does not own its data.
struct AttentionBias {
  const float* data;
  int64_t head_stride;
  int64_t query_stride;
  int64_t key_stride;
};

// Keys and values of cross-attention, made of M rows that are not the queries' own. Does not own
// them.
struct CrossKv {
  MatrixView<const float> keys;              // [M, K Dk]
  MatrixView<const float> values;            // [M, K Dv]
  absl::Span<const int32_t> positions = {};  // [M], as AttentionSequence::positions
};

// The states of causal linear attention for a sequence that comes in parts. `before` is what the
// earlier parts have left, or null in the first part; `after` receives what they and this part
// leave, or is null if it is not wanted. Each has LinearStateSize floats for each head, aligned to
// 64 bytes. Does not own them.
struct LinearState {
  const float* before = nullptr;
  float* after = nullptr;
};

// One sequence of a packed batch: its rows are [row_begin, row_begin + length). Does not own what
// it points to.
struct AttentionSequence {
  int64_t row_begin;
  int64_t length;
  const AttentionBias* bias = nullptr;  // or none
  float* probabilities = nullptr;       // if set, receives [H, length, keys()] in row-major order
  // Only the queries [first_query, first_query + queries) are computed, which means their rows of
  // the context and of the probabilities.
  int64_t first_query = 0;
  int64_t queries = length;
  // [length]: the index of each token in its padded row, ascending; or empty: 0, 1, 2, …
  absl::Span<const int32_t> positions = {};
  // The keys and values that the queries attend to (cross-attention); or null: those of their own
  // sequence.
  const CrossKv* cross_kv = nullptr;
  // If set, the probabilities of head number h are multiplied by head_gates[h], in [0, 1], before
  // they weigh the values; the probabilities that are returned are not. A head with gate 0 costs
  // nothing unless its probabilities are returned.
  const float* head_gates = nullptr;
  LinearState state = {};  // only for kCausalLinear; if set, all queries are computed

  // The number of keys that the queries attend to.
  int64_t keys() const { return cross_kv == nullptr ? length : cross_kv->keys.rows; }
};

// Whether Attention takes queries, keys and values that are rounded to bfloat16 already, as it
// would round them itself. It does for softmax attention without relative scores, and even widths,
// in the types that attend in bfloat16, on CPUs with AVX512_BF16 and without AMX.
bool AcceptsBf16Pairs(const AttentionShape& shape);

// The scratch memory of one instance: for each worker, some scores and the keys and values of a
// block. One call of Attention at a time may use it.
class AttentionWorkspace {
 public:
  // Allocates for up to `workers` workers and sequences of up to `max_length` keys.
  AttentionWorkspace(int workers, const AttentionShape& shape, int64_t max_length);
  AttentionWorkspace(AttentionWorkspace&&) noexcept;
  AttentionWorkspace& operator=(AttentionWorkspace&&) noexcept;
  ~AttentionWorkspace();
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The operands of all sequences, which are views of the fused input projection: queries
// [T, H Dk], keys [T, K Dk], values [T, K Dv], with any row stride; or half as many columns if they
// are pairs, two neighbours in the 32 bits of an element, as LinearOutput::Pairs
// (gemm/linear_rows.h) has them. Does not own them.
struct AttentionInput {
  MatrixView<const float> queries;
  MatrixView<const float> keys;               // of sequences without cross_kv
  MatrixView<const float> values;             // of sequences without cross_kv
  const AttentionBias* distances = nullptr;   // a second bias, for all sequences; or none
  RelativeScores relative = {};               // of disentangled attention; or none
  const float* score_weights = nullptr;       // [H Dk], for additive attention
  MatrixView<const float> key_mixing = {};    // [k, positions], for kLinformer
  MatrixView<const float> value_mixing = {};  // [k, positions], for kLinformer
  bool are_pairs = false;                     // only if AcceptsBf16Pairs, and without cross_kv
};

// Computes context [T, H Dv] = softmax((Q K^T + relative) scale + biases) V for each sequence and
// head: Vaswani et al. 2017, section 3.2.1. Returns the number of (query, head) rows that are fully
// masked, that is, have no visible key; these get zeros, in the context and in the probabilities.
// If the context comes with an operand, which is only for types that round each element by itself
// (RoundsElementwise, gemm/number_format.h), the computed rows are written to it too, each block of
// them while it is in cache.
//
// Causal attention computes no block of keys that all of a panel's queries come before. A causal
// sequence's first rows have the bits that they have without the rows after them.
//
// With a window the cost grows with length x (window + global blocks), and with each listed pair of
// blocks. Additive attention has other scores, in float32 whatever the mode. Linear attention and
// kLinformer have no scores of pairs: they ignore biases, windows and probabilities, no row is
// fully masked, and the cost grows with the length alone.
//
// A row's bits depend only on its own sequence and cross_kv: not on the size of the team, on other
// sequences or on where the batch holds it. NaN and infinities stay within their sequence; with a
// window they may reach queries that are computed together with queries that see them.
int64_t Attention(const ThreadTeam& team, const AttentionShape& shape, const AttentionInput& input,
                  absl::Span<const AttentionSequence> sequences, const PreparedRows& context,
                  AttentionWorkspace& workspace);

}  // namespace attendant
