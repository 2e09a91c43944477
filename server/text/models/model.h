// Model, the "model" of tokenizer.json, which turns a piece of text into tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"
#include "server/text/models/bpe_merges.h"
#include "server/text/models/byte_trie.h"

namespace attendant::text {

// A token, made from the items [first, last) of its piece.
struct ModelToken {
  uint32_t id;
  uint32_t first, last;
};

// A step of Unigram: the best way to a place in the piece, a token from `begin` to there.
struct UnigramStep {
  double score;
  uint32_t begin;
  uint32_t id;
};

// Memory that a model reuses from piece to piece.
struct ModelScratch {
  PieceBytes bytes;
  std::vector<UnigramStep> steps;
  std::vector<BpeSymbol> symbols;
  MergeScratch merging;
};

// Immutable; thread-safe.
class Model {
 public:
  static constexpr uint32_t kNoId = ByteTrie::kNoValue;

  explicit Model(ByteTrie vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;

  // Appends the tokens of a non-empty piece.
  virtual void Tokenize(ItemSpan piece, ModelScratch& scratch,
                        std::vector<ModelToken>& tokens) const = 0;

  // Returns the id of a token, or kNoId.
  uint32_t Find(absl::string_view token) const { return vocabulary_.Find(token); }

  // Returns the token with an id; empty if there is none.
  std::string Text(uint32_t id) const { return vocabulary_.Text(id); }

  // Returns the number of tokens. Ids may have gaps.
  virtual uint32_t size() const { return vocabulary_.size(); }

  // Returns whether the text of tokens with this id is their piece's, which may differ from the
  // vocabulary's.
  virtual bool HasSurfaceText(uint32_t) const { return false; }

  // Returns the maximum of scratch bytes, including tokens, per byte of a piece.
  virtual size_t scratch_bytes() const = 0;

  // Returns the maximum number of tokens for an item.
  virtual size_t tokens_of_item() const { return 1; }

 protected:
  const ByteTrie vocabulary_;
};

// Tokens and their ids, in the order of a file.
using Vocabulary = std::vector<std::pair<std::string, uint32_t>>;

inline constexpr size_t kMaxTokenBytes = 1024;

// Loads an object of tokens and ids. Returns INVALID_ARGUMENT with the field.
absl::StatusOr<Vocabulary> LoadVocabulary(const Fields& fields);

// Returns the type of a "model". Files of tokenizers before 0.10 do not name it: the keys decide.
absl::string_view ModelType(JsonValue model);

// Loads a model of any type and fills `vocabulary` with its tokens. `scores` replace those of
// Unigram if there is one for each token. Returns INVALID_ARGUMENT with an invalid key, and
// UNIMPLEMENTED for unsupported features.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const Fields& fields,
                                                 absl::Span<const double> scores,
                                                 Vocabulary& vocabulary);

// Loaders for each type, used by LoadModel.
absl::StatusOr<std::unique_ptr<Model>> LoadWordPiece(const Fields& fields, Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadWordLevel(const Fields& fields, Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadUnigram(const Fields& fields,
                                                   absl::Span<const double> scores,
                                                   Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadBpe(const Fields& fields, Vocabulary& vocabulary);

}  // namespace attendant::text
