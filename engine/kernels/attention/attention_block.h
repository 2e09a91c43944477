// AttentionBlock and AttentionScratch: the operands of AttendHeads (attend_block.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/rounding.h"
#include "engine/kernels/attention/relative_scores.h"
#include "engine/model/attention_pattern.h"

namespace attendant {

// Keys are taken in blocks of this many, with the softmax carried from block to block. A fixed
// size, so that a row's bits depend on nothing but its sequence; its gathered keys and values stay
// in a core's L2 cache at head width 64.
inline constexpr int64_t kKeyBlock = 512;
// Most queries of one block, or of the blocks of several heads together.
inline constexpr int64_t kMaxQueries = 512;
// Most heads that share what is packed of their keys and values.
inline constexpr int64_t kMostSharing = 8;
// Bound on the columns of a micro-kernel, for any instruction set; packed operands are padded to it
// at most.
inline constexpr int64_t kMaxPanelWidth = 32;

constexpr int64_t RoundUpToPanel(int64_t size) { return RoundUp(size, kMaxPanelWidth); }

// The format of the operands that the products read; their sums are float32.
enum class AttentionOperands {
  kF32,
  // Rounded to bfloat16, but each in a float32: what the others compute, on any CPU.
  kRounded,
  // Rounded to bfloat16, two neighbours in depth in the 32 bits of an element, the first one in the
  // low half. Takes a CPU with AVX512_BF16.
  kPairs,
  // Such pairs, in multiples of 16. Takes a CPU with AMX, which sums in an order of its own.
  kTiles
};

// The bias of one head; see AttentionBias. data is null for none.
struct HeadBias {
  explicit operator bool() const { return data != nullptr; }

  const float* data = nullptr;
  int64_t query_stride = 0;
  int64_t key_stride = 0;
};

// [queries, Dk] against [length, Dk] and [length, Dv] to [queries, Dv]; of pairs, the columns are
// Dk / 2 and Dv / 2. 1 <= queries.rows <= kMaxQueries; length may be 0.
struct AttentionBlock {
  MatrixView<const float> queries;
  MatrixView<const float> keys;
  MatrixView<const float> values;
  MatrixView<float> context;
  float scale = 1.0f;
  HeadBias bias;
  HeadBias distances;
  const float* score_weights = nullptr;     // [Dk]: additive attention; or none
  RelativeScores relative;                  // of one head
  bool causal = false;                      // see AttentionShape; keys are those of the queries
  int64_t window = 0;                       // see AttentionShape
  AttentionPattern pattern;                 // see AttentionShape
  absl::Span<const int32_t> positions;      // of the sequence; see AttentionSequence
  absl::Span<const int32_t> key_positions;  // [length], the positions of the keys
  int64_t first_query = 0;                  // index in the sequence of queries' row 0
  float* probabilities = nullptr;           // [queries, length], or null
  AttentionOperands operands = AttentionOperands::kF32;
  bool are_pairs = false;  // queries, keys and values are such elements of kPairs already
  int64_t sharing = 1;     // heads that read what is packed of the keys and values

  // The position of the sequence's query, or key, with this index.
  int64_t QueryPosition(int64_t i) const { return positions.empty() ? i : positions[i]; }
  int64_t KeyPosition(int64_t i) const { return key_positions.empty() ? i : key_positions[i]; }
};

// Parts of one worker's scratch, each aligned to 64 bytes; block =
// RoundUpToPanel(min(length, kKeyBlock)).
struct AttentionScratch {
  float* queries;  // RoundUpToPanel(Dk) x kMaxPanelWidth
  float* keys;     // block x RoundUpToPanel(Dk)
  float* values;   // block x RoundUpToPanel(Dv)
  float* scores;   // block x kMaxPanelWidth
  float* bias;     // block x kMaxPanelWidth
  // Only for disentangled attention, with `rows` rows of distances; else empty.
  float* tokens;           // RoundUpToPanel(Dk) x kMaxPanelWidth
  float* query_positions;  // rows x kMaxPanelWidth
  float* key_positions;    // block x rows
  float* context;          // kMaxQueries x RoundUpToPanel(Dv)
  float* state;            // of attention that does not score pairs, else none
  float* maxima;           // kMaxQueries
  float* sums;             // kMaxQueries
};

}  // namespace attendant
