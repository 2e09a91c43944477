// Ids of the kept tokens of a request, ready for the engine's embeddings.
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

namespace attendant::server {

// Ids of the kept tokens alone, back to back: [T] each, or empty. All are inside their tables.
struct KeptIds {
  std::vector<int32_t> words;
  std::vector<int32_t> positions;
  std::vector<int32_t> token_types;
  std::vector<int64_t> ordinals = {};  // see TokenIds

  TokenIds view() const { return {words, positions, token_types, ordinals}; }
  // Those of some tokens.
  KeptIds Tokens(int64_t first, int64_t count) const;
  // Those of these sequences, one after the other. `layout` is that of all.
  KeptIds OfSequences(const TokenLayout& layout, absl::Span<const int64_t> sequences) const;
  int64_t bytes() const {
    return static_cast<int64_t>((words.size() + positions.size() + token_types.size()) *
                                    sizeof(int32_t) +
                                ordinals.size() * sizeof(int64_t));
  }
};

struct IdTensors {
  CheckedTensor token_ids;
  std::optional<CheckedTensor> token_type_ids = {};
  std::optional<CheckedTensor> position_ids = {};
};

// Returns how many of the tokens move the default positions of the tokens after them on: all, or
// those that are not padding ids.
int64_t CountedTokens(const KeptIds& ids, const EmbeddingShape& embeddings);

enum class TruncationSide { kRight, kLeft };

// Returns the layout without the tokens, on this side, by which sequences exceed `max_length`, 0
// being any, as default positions count them.
TokenLayout Truncate(const TokenLayout& layout, const EmbeddingShape& embeddings,
                     int64_t max_length, TruncationSide side);

// Where ids are in a request.
struct IdLayout {
  const TokenLayout& layout;
  const TokenLayout& whole;  // before truncation; the same if nothing was cut
  // The sequence's tokens in requests before that default positions count; see CountedTokens.
  int64_t tokens_before = 0;
};

// Ids of padded tokens matter only where default positions count them, and may be outside the
// table. INVALID_ARGUMENT: an id outside its table (the first one is named), a table that the model
// does not have, or a row longer than the default positions reach.
absl::StatusOr<KeptIds> ReadKeptIds(const IdTensors& tensors, const EmbeddingShape& embeddings,
                                    const IdLayout& of);

}  // namespace attendant::server
