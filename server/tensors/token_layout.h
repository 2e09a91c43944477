// TokenLayout, the computed rows of a request and their places in its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {

// Consecutive kept rows in the request's tensors.
struct RowRun {
  int64_t first = 0;  // row of the request: b S + s, s B + b (sequence first), or t (packed)
  int64_t count = 0;
};

// Letters as in encoder_service.proto. Immutable once built; bounded by --max-request-tokens.
struct TokenLayout {
  bool packed = false;
  bool sequence_first = false;            // not if packed
  int64_t sequences = 0;                  // B
  int64_t padded_length = 0;              // S; if packed, the longest length
  int64_t rows = 0;                       // B x S, or T if packed
  std::vector<int32_t> cu_seqlens = {0};  // [B + 1], of kept tokens
  std::vector<int32_t> positions = {};    // [T]: index of each kept token in its padded row
  bool leading = true;            // every sequence keeps its first tokens: positions are 0, 1, …
  std::vector<RowRun> runs = {};  // of the kept tokens, in order; ascending unless sequence_first

  int64_t tokens() const { return cu_seqlens.back(); }  // T
  int64_t length(int64_t sequence) const { return cu_seqlens[sequence + 1] - cu_seqlens[sequence]; }
  absl::Span<const int32_t> positions_of(int64_t sequence) const {
    return absl::MakeConstSpan(positions).subspan(cu_seqlens[sequence], length(sequence));
  }
};

// Returns the layout with `rows` more rows before the first token of each non-empty sequence, and
// space for them in the others. Positions count from the first of those rows.
TokenLayout WithRowsBefore(const TokenLayout& layout, int64_t rows);

// Returns the layout of some of the sequences, in ascending order, with rows as in the whole.
TokenLayout SequencesAt(const TokenLayout& layout, absl::Span<const int64_t> sequences);

// The fields of a request that say which tokens of a tensor are kept.
struct TokenFields {
  absl::Span<const int64_t> lengths = {};         // may be empty
  std::optional<WireTensor> attention_mask = {};  // nullopt if absent
  std::string scope = {};                         // prefix of both in messages
  bool sequence_first = false;                    // the tensor is [S, B]
  int64_t max_tokens = 0;
  const char* limit = "--max-request-tokens";  // what `max_tokens` is, for messages
};

// A range of a sequence's kept tokens.
struct TokenRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Returns the layout without kept tokens outside their sequence's range.
TokenLayout WithRangesKept(const TokenLayout& layout,
                           absl::FunctionRef<TokenRange(int64_t sequence)> range);

// [T]: the row of the request for each kept token.
std::vector<int64_t> RowsOfTokens(const TokenLayout& layout);

// [rows]: the kept token for each row of the request; -1 for padding.
std::vector<int32_t> TokensOfRows(const TokenLayout& layout);

// Returns the kept tokens of these rows, within [0, layout.rows); -1 for padding.
std::vector<int32_t> TokensOfRows(const TokenLayout& layout, absl::Span<const int64_t> rows);

// Lays out the tensor `field` of this shape: [B, S], [S, B], or [T] if packed, with dimensions of
// at least 1. Returns INVALID_ARGUMENT for too many rows or sequences, or for fields that
// contradict each other or the shape.
absl::StatusOr<TokenLayout> LayOutTokens(const std::string& field, absl::Span<const int64_t> shape,
                                         const TokenFields& fields);

}  // namespace attendant::server
