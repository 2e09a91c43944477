// Softmax, additive, linear and Linformer attention over a packed batch of sequences without
// padding. Threads share the work by sequence, head and block of queries.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/model/attention_block_shape.h"

namespace attendant {

// The sizes and options that all sequences of a batch share in one layer. Head h has the columns
// [h Dk, (h+1) Dk) of queries, and reads the keys and values of head floor(h K / H). K is H except
// for kSoftmax. Only kSoftmax without a pattern is causal. The projections of the layer have no
// effect here.
struct AttentionShape : AttentionBlockShape {
  int64_t relative_rows = 0;  // rows of AttentionInput::relative, or 0
  // The number format of the products. For kBf16 and kInt8, queries, keys, values and probabilities
  // are rounded to bfloat16 if the CPU has bf16 units or the mode is emulated; otherwise they are
  // float32. Sums and the softmax are always float32.
  ComputeMode mode = {};

  // The comparison of the base class would ignore the members above.
  bool operator==(const AttentionShape&) const = delete;
};

// A bias that is added to the scaled scores. The element for head number h, query position s and
// key position t is data[h * head_stride + s * query_stride + t * key_stride]. A stride of 0
// broadcasts; strides may be negative. Minus infinity masks the key for the query. Does not own its
// data.
struct AttentionBias {
  explicit operator bool() const { return data != nullptr; }

  const float* data = nullptr;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
  int64_t key_stride = 0;
};

// Disentangled attention: He et al. 2021, section 3.1. Each distance has a row of `keys`, against
// which queries are scored, and a row of `queries`, against which keys are scored. Both are added
// to the scores before scaling. Does not own the arrays.
struct RelativeScores {
  explicit operator bool() const { return keys.data != nullptr || queries.data != nullptr; }
  int64_t rows() const { return keys.data != nullptr ? keys.rows : queries.rows; }

  MatrixView<const float> keys;     // [rows, H Dk], or null if queries are not scored
  MatrixView<const float> queries;  // [rows, H Dk], or null if keys are not scored
  // [2 middle + 1], ascending: row_of[middle + query position - key position] is the row of the
  // distance.
  const int32_t* row_of = nullptr;
  int64_t middle = 0;
};

// Keys and values of cross-attention, projected from M source rows. Does not own them.
struct CrossKv {
  MatrixView<const float> keys;              // [M, K Dk]
  MatrixView<const float> values;            // [M, K Dv]
  absl::Span<const int32_t> positions = {};  // [M], like AttentionSequence::positions
};

// The states of causal linear attention for a sequence that is computed chunk by chunk. `before` is
// the state after the previous chunk, or null for the first chunk. `after` receives the state after
// this chunk; it may be null. Each has LinearStateSize floats per head, aligned to 64 bytes. Does
// not own them.
struct LinearState {
  const float* before = nullptr;
  float* after = nullptr;
};

// One sequence of a packed batch, with the rows [row_begin, row_begin + length). Does not own its
// arrays.
struct AttentionSequence {
  int64_t row_begin;
  int64_t length;
  const AttentionBias* bias = nullptr;  // may be null
  float* probabilities = nullptr;       // receives [H, length, keys()] in row-major order if set
  // Only the queries [first_query, first_query + queries) are computed: their rows of the context
  // and of the probabilities.
  int64_t first_query = 0;
  int64_t queries = length;
  // [length], the index of each token in its padded row, ascending. If empty, 0, 1, 2, ….
  absl::Span<const int32_t> positions = {};
  // The keys and values of cross-attention. If null, the queries attend to their own sequence.
  const CrossKv* cross_kv = nullptr;
  // If set, the probabilities of head number h are multiplied by head_gates[h], in [0, 1], before
  // they weigh the values. Returned probabilities are not multiplied. A head with gate 0 is skipped
  // unless its probabilities are returned.
  const float* head_gates = nullptr;
  LinearState state = {};  // only for kCausalLinear; if set, all queries must be computed

  // The number of keys that the queries attend to.
  int64_t keys() const { return cross_kv == nullptr ? length : cross_kv->keys.rows; }
};

// Whether Attention accepts bf16 pairs: queries, keys and values that are already rounded to
// bfloat16, as Attention would round them. True for softmax attention with even widths and without
// relative scores, in compute types that attend in bfloat16, on CPUs with bf16 units but not AMX.
bool AcceptsBf16Pairs(const AttentionShape& shape);

// The scratch memory of one instance: for each worker, scores, and the packed keys and values of a
// block. Not thread-safe: only one call of Attention at a time may use it.
class AttentionWorkspace {
 public:
  // Allocates for up to `workers` workers and sequences of up to `max_length` keys.
  AttentionWorkspace(int workers, const AttentionShape& shape, int64_t max_length);
  ~AttentionWorkspace();
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The inputs of all sequences, usually views of the fused input projection: queries [T, H Dk], keys
// [T, K Dk] and values [T, K Dv], with any row stride. If they are bf16 pairs, they have half as
// many columns, each two adjacent elements in 32 bits; see PreparedRows::Pairs
// (gemm/linear_rows.h). Does not own them.
struct AttentionInput {
  MatrixView<const float> queries;
  MatrixView<const float> keys;               // of sequences without cross_kv
  MatrixView<const float> values;             // of sequences without cross_kv
  const AttentionBias* distances = nullptr;   // a second bias, for all sequences; may be null
  RelativeScores relative = {};               // only for disentangled attention
  const float* score_weights = nullptr;       // [H Dk], only for additive attention
  MatrixView<const float> key_mixing = {};    // [k, positions], only for kLinformer
  MatrixView<const float> value_mixing = {};  // [k, positions], only for kLinformer
  bool are_pairs = false;                     // only if AcceptsBf16Pairs, and without cross_kv
};

// Computes context [T, H Dv] = softmax((Q K^T + relative) scale + biases) V for each sequence and
// head: Vaswani et al. 2017, section 3.2.1. Returns the number of fully masked rows, counted per
// query and head: rows without a visible key, which get zeros in the context and in the
// probabilities. If `context` has a packed GEMM input, each block of computed rows is also written
// there while it is in cache. This requires a compute type that rounds each element by itself
// (RoundsElementwise, gemm/number_format.h).
//
// Causal attention skips blocks of keys that follow all queries of a panel. The first rows of a
// causal sequence have the same bits as without the rows that follow them.
//
// With a window, the cost is proportional to length x (window + global blocks), plus the cost of
// each listed block pair. Additive attention computes other scores, in float32 whatever the mode.
// Linear attention and kLinformer do not score each query and key: they ignore biases, windows and
// probabilities, do not mask rows, and their cost is proportional to the length.
//
// A row's bits depend only on its own sequence and cross_kv, not on the size of the team, on other
// sequences or on its position in the batch. NaN and infinity stay within their sequence. With a
// window, they may reach queries that are computed together with a query that sees them.
int64_t Attention(const ThreadTeam& team, const AttentionShape& shape, const AttentionInput& input,
                  absl::Span<const AttentionSequence> sequences, const PreparedRows& context,
                  AttentionWorkspace& workspace);

}  // namespace attendant
