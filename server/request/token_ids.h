// Ids of a request's kept tokens, for the engine's embeddings.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"
#include "server/text/tokenizer.h"

namespace attendant::server {

// Ids of the kept tokens, back to back: [T] each, or empty. All are within their tables.
struct KeptIds {
  std::vector<int32_t> words;
  std::vector<int32_t> positions;
  std::vector<int32_t> token_types;
  std::vector<int64_t> ordinals = {};  // see TokenIds

  TokenIds view() const { return {words, positions, token_types, ordinals}; }
  // Returns the ids of these sequences, in this order. `layout` holds all sequences.
  KeptIds OfSequences(const TokenLayout& layout, absl::Span<const int64_t> sequences) const;
  int64_t bytes() const {
    return static_cast<int64_t>((words.size() + positions.size() + token_types.size()) *
                                    sizeof(int32_t) +
                                ordinals.size() * sizeof(int64_t));
  }
};

// The tensors of ids of a request, and the layouts that locate them.
struct IdTensors {
  const TokenLayout& layout;
  const TokenLayout& whole;  // before truncation
  CheckedTensor token_ids;
  std::optional<CheckedTensor> token_type_ids = {};
  std::optional<CheckedTensor> position_ids = {};
  // Tokens of the sequence in earlier requests that count in default positions; see CountedTokens.
  int64_t tokens_before = 0;
};

// Returns how many tokens advance the default positions of later tokens: all, or only those that
// are not padding ids.
int64_t CountedTokens(const KeptIds& ids, const EmbeddingShape& embeddings);

// Returns the layout without the tokens on `side` that exceed `max_length` by default positions. A
// `max_length` of 0 keeps everything.
TokenLayout Truncate(const TokenLayout& layout, const EmbeddingShape& embeddings,
                     int64_t max_length, text::TruncationSide side);

// Reads the ids. Padded ids only matter where default positions count them, and may be outside the
// table. Returns INVALID_ARGUMENT for the first id outside its table, or for a row longer than the
// default positions allow.
absl::StatusOr<KeptIds> ReadKeptIds(const IdTensors& tensors, const EmbeddingShape& embeddings);

}  // namespace attendant::server
