// Scaled dot-product attention over a packed batch: per (sequence, head, query block), only real
// keys, float32 softmax.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention/relative_scores.h"
#include "engine/model/attention_pattern.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

struct AttentionShape {
  int64_t heads;        // H
  int64_t key_width;    // Dk: head h owns columns [h Dk, (h+1) Dk) of queries and keys
  int64_t value_width;  // Dv: head h owns columns [h Dv, (h+1) Dv) of values and of the context
  float scale;          // on the scores; 1/sqrt(Dk) for most models
  int64_t window = 0;   // keys further from the query than this are masked; 0: none is
  AttentionPattern pattern = {};  // what a window counts in, and who is beyond it
  int64_t relative_rows = 0;      // of AttentionInput's `relative`; 0: none
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t mixed_keys = 0;  // k of kLinformer
  // [H]: the number of each head, by which biases and gates are found; or empty: 0, 1, …
  absl::Span<const int64_t> head_numbers = {};
  // What the products compute in: queries, keys, values and probabilities are rounded to bfloat16
  // in kBf16 and kInt8 where the CPU has units for that, or if emulated, and are float32 else. Sums
  // and softmax are float32.
  ComputeMode mode = {};
};

// Added to the scaled scores: element (h, s, t) is at data[h * head_stride + s * query_stride + t *
// key_stride]; a stride of 0 broadcasts. s and t are the tokens' positions. Minus infinity masks
// a pair. Does not own.
struct AttentionBias {
  const float* data;
  int64_t head_stride;
  int64_t query_stride;
  int64_t key_stride;
};

// Keys and values of cross-attention: those of M rows that are not the queries' own. Does not own.
struct CrossKv {
  MatrixView<const float> keys;              // [M, H Dk]
  MatrixView<const float> values;            // [M, H Dv]
  absl::Span<const int32_t> positions = {};  // [M], as those of a sequence
};

// Of a sequence that comes in parts: what those before this one have left behind, or null, if this
// is the first; and where to put what they and this one leave, or null: nowhere. For each head
// LinearStateSize floats, aligned to 64 bytes. Does not own.
struct LinearState {
  const float* before = nullptr;
  float* after = nullptr;
};

// One sequence of a packed batch: rows [row_begin, row_begin + length).
struct AttentionSequence {
  int64_t row_begin;
  int64_t length;
  const AttentionBias* bias = nullptr;  // or none
  float* probabilities = nullptr;       // if set: receives [H, length, keys()], row-major
  // Computed are the queries [first_query, first_query + queries) alone: their rows of the context
  // and of the probabilities.
  int64_t first_query = 0;
  int64_t queries = length;
  // [length]: where each token is in its padded row, ascending; or empty: 0, 1, 2, …
  absl::Span<const int32_t> positions = {};
  // What the queries attend to (cross-attention); or null: their own sequence.
  const CrossKv* cross_kv = nullptr;
  // If set: each head's probabilities are times its gate in [0, 1] before they meet the values, by
  // its number. The probabilities that are received are not. 0 costs nothing if none are.
  const float* head_gates = nullptr;
  LinearState state = {};  // of kCausalLinear, whose queries are then all computed

  int64_t keys() const { return cross_kv == nullptr ? length : cross_kv->keys.rows; }
};

// Scratch of one instance: for each worker some scores and the keys and values of a block. Not
// thread-safe.
class AttentionWorkspace {
 public:
  // For up to `workers` workers and sequences of up to `max_length` keys.
  AttentionWorkspace(int workers, const AttentionShape& shape, int64_t max_length);
  AttentionWorkspace(AttentionWorkspace&&) noexcept;
  AttentionWorkspace& operator=(AttentionWorkspace&&) noexcept;
  ~AttentionWorkspace();
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The operands, views on the fused projection: queries and keys [T, H Dk], values [T, H Dv], any
// row stride.
struct AttentionInput {
  MatrixView<const float> queries;
  MatrixView<const float> keys;               // of sequences without cross_kv
  MatrixView<const float> values;             // likewise
  const AttentionBias* distances = nullptr;   // a bias of every sequence, beside its own; or none
  RelativeScores relative = {};               // or none
  const float* score_weights = nullptr;       // [H Dk], of additive attention
  MatrixView<const float> key_mixing = {};    // [k, positions], of kLinformer
  MatrixView<const float> value_mixing = {};  // the same
};

// context[T, H Dv] = softmax((Q K^T + relative) scale + biases) V for each sequence and head, after
// Vaswani et al. 2017, section 3.2.1. With a window the cost grows with length x (window +
// globals), and with each listed pair of blocks. A fully masked row gets zeros (and zero
// probabilities); returns how many (query, head) rows were fully masked. A row's bits depend only
// on its own sequence and cross_kv: not on the team's size, other sequences, or where the batch
// holds it. Non-finite values stay within their sequence; with a window they may reach the queries
// computed beside those that see them. Additive attention has other scores, in float32 whatever the
// mode. Linear attention and kLinformer have no scores of pairs: biases, windows and probabilities
// are not looked at, no row is fully masked, and the cost grows with the length alone.
int64_t Attention(const ThreadTeam& team, const AttentionShape& shape, const AttentionInput& input,
                  absl::Span<const AttentionSequence> sequences, MatrixView<float> context,
                  AttentionWorkspace& workspace);

}  // namespace attendant
