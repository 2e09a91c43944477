// AttendHeads: computes the attention of some queries of one head, or of several heads that share
// keys and values, to all keys of their sequence, on one thread.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/rounding.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// The number of keys that are computed at a time; the softmax is updated from block to block. It is
// fixed, so that a row's bits depend only on its sequence. The packed keys and values of a block
// fit into a core's L2 cache at head width 64.
inline constexpr int64_t kKeyBlock = 512;
// The largest number of queries of a block, or of the blocks of several heads together.
inline constexpr int64_t kMaxQueries = 512;
// The largest number of heads that share packed keys and values.
inline constexpr int64_t kMostSharing = 8;
// Upper bound on the columns of a micro-kernel, for any instruction set. Packed matrices are padded
// to at most this width.
inline constexpr int64_t kMaxPanelWidth = 32;

constexpr int64_t RoundUpToPanel(int64_t size) { return RoundUp(size, kMaxPanelWidth); }

// The number format of the inputs of products. Sums are float32.
enum class AttentionOperands {
  kF32,
  // Rounded to bfloat16 but stored as float32. Emulates the formats below on any CPU.
  kRounded,
  // Bf16 pairs: rounded to bfloat16, two elements that are adjacent in depth in 32 bits, the first
  // one in the low half. Requires bf16 units.
  kPairs,
  // Bf16 pairs in multiples of 16. Requires AMX, which adds in a different order.
  kTiles
};

// Some queries of one head. Requires 1 <= queries.rows <= kMaxQueries; `length` may be 0. Bf16
// pairs have Dk / 2 and Dv / 2 columns. Does not own its arrays.
struct AttentionBlock {
  MatrixView<const float> queries;  // [queries, Dk]
  MatrixView<const float> keys;     // [length, Dk]
  MatrixView<const float> values;   // [length, Dv]
  MatrixView<float> context;        // [queries, Dv]
  float scale = 1.0f;
  AttentionBias bias;                    // of one head, from `data` on; may be null
  AttentionBias distances;               // likewise
  const float* score_weights = nullptr;  // [Dk], only for additive attention
  RelativeScores relative;               // of one head
  // See AttentionShape; not for cross-attention. In linear attention, kCausalLinear.
  bool causal = false;
  int64_t window = 0;                       // see AttentionShape
  AttentionPattern pattern;                 // see AttentionShape
  absl::Span<const int32_t> positions;      // of the sequence; see AttentionSequence
  absl::Span<const int32_t> key_positions;  // [length], the positions of the keys
  int64_t first_query = 0;                  // index in the sequence of row 0 of `queries`
  float* probabilities = nullptr;           // [queries, length], or null
  AttentionOperands operands = AttentionOperands::kF32;
  bool are_pairs = false;  // whether queries, keys and values are already bf16 pairs
  int64_t sharing = 1;     // number of heads that share the packed keys and values

  // Return the position of the query or key with this index in the sequence.
  int64_t QueryPosition(int64_t i) const { return positions.empty() ? i : positions[i]; }
  int64_t KeyPosition(int64_t i) const { return key_positions.empty() ? i : key_positions[i]; }
};

// The scratch memory of one worker. Each array is aligned to 64 bytes. In their sizes, `block` is
// RoundUpToPanel(min(length, kKeyBlock)).
struct AttentionScratch {
  float* queries;  // RoundUpToPanel(Dk) x kMaxPanelWidth
  float* keys;     // block x RoundUpToPanel(Dk)
  float* values;   // block x RoundUpToPanel(Dv)
  float* scores;   // block x kMaxPanelWidth
  float* bias;     // block x kMaxPanelWidth
  // Only for disentangled attention, with `rows` rows of relative positions; otherwise empty.
  float* tokens;           // RoundUpToPanel(Dk) x kMaxPanelWidth
  float* query_positions;  // rows x kMaxPanelWidth
  float* key_positions;    // block x rows
  float* context;          // kMaxQueries x RoundUpToPanel(Dv)
  float* state;            // only for attention without a score per query and key
  float* maxima;           // kMaxQueries
  float* sums;             // kMaxQueries
};

// Computes 1 to kMostSharing heads. They must have the same keys, values and positions, and may
// differ in queries, biases and outputs; keys and values are packed only once. Requires
// heads.size() * RoundUpToPanel(queries) <= kMaxQueries. Returns the number of fully masked queries
// of all heads.
int64_t AttendHeads(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch);

}  // namespace attendant
