// The "model" of tokenizer.json: how a piece of text becomes tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"

namespace attendant::text {

// A token that is made of the items [first, last) of its piece.
struct ModelToken {
  uint32_t id;
  uint32_t first, last;
};

// Memory that tokenizing reuses from piece to piece.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

// Immutable; thread-safe.
class Model {
 public:
  static constexpr uint32_t kNoId = 0xFFFFFFFF;

  virtual ~Model() = default;

  virtual std::unique_ptr<ModelScratch> MakeScratch() const = 0;

  // Appends the tokens of a piece that is not empty. `scratch` is of this model's MakeScratch.
  virtual void Tokenize(ItemSpan piece, ModelScratch& scratch,
                        std::vector<ModelToken>& tokens) const = 0;

  // The id of a token, or kNoId.
  virtual uint32_t Find(absl::string_view token) const = 0;

  // The token with an id; empty if there is none.
  virtual std::string Text(uint32_t id) const = 0;

  // The number of different tokens. Ids may have gaps.
  virtual uint32_t size() const = 0;

  // Whether a token's text is that of its piece; else it is the vocabulary's.
  virtual bool has_surface_text() const { return false; }

  // An estimate of the memory that the model holds.
  virtual size_t memory_bytes() const = 0;

  // The most bytes of scratch memory, and tokens, for each byte of a piece.
  virtual size_t scratch_bytes() const = 0;

  // The most tokens that an item may become.
  virtual size_t tokens_of_item() const { return 1; }
};

// Tokens and their ids, as a file lists them.
using Vocabulary = std::vector<std::pair<std::string, uint32_t>>;

inline constexpr size_t kMaxTokenBytes = 1024;

// Reads an object of tokens and ids. INVALID_ARGUMENT names the field.
absl::StatusOr<Vocabulary> LoadVocabulary(const Fields& fields);

// Reads the model of any type. INVALID_ARGUMENT names the key that is not as expected,
// UNIMPLEMENTED what is not supported. `vocabulary` gets its tokens.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const Fields& fields, Vocabulary& vocabulary);

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  uint32_t max_input_chars_per_word = 100;
};

absl::StatusOr<std::unique_ptr<Model>> MakeWordPiece(const WordPieceOptions& options,
                                                     const Vocabulary& vocabulary);

// The kinds of model, for LoadModel.
absl::StatusOr<std::unique_ptr<Model>> LoadWordPiece(const Fields& fields, Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadWordLevel(const Fields& fields, Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadUnigram(const Fields& fields, Vocabulary& vocabulary);
absl::StatusOr<std::unique_ptr<Model>> LoadBpe(const Fields& fields, Vocabulary& vocabulary);

}  // namespace attendant::text
