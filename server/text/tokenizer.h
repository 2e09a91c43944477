// Tokenizer, which turns texts into token ids and their places, like Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::text {

class JsonValue;

enum class TruncationSide { kRight, kLeft };

struct EncodeOptions {
  // Maximum number of tokens, including special ones; 0: unlimited.
  size_t max_length = 0;
  bool add_special_tokens = true;
  // The side on which tokens are truncated.
  TruncationSide truncation_side = TruncationSide::kRight;
  // Whether to return places.
  bool places = true;
};

// A part [begin, end) of a text.
struct TextRange {
  uint32_t begin = 0, end = 0;
};

// The tokens of a text or pair; all lists have one entry per token.
struct Encoding {
  // The text of a token; kNoText for added special tokens.
  static constexpr uint8_t kFirst = 0, kSecond = 1, kNoText = 2;

  std::vector<uint32_t> ids;
  std::vector<uint32_t> type_ids;
  std::vector<uint8_t> text_of;
  // Places in the input text, empty for added tokens. Both lists are empty without
  // EncodeOptions::places.
  std::vector<TextRange> bytes;
  std::vector<TextRange> code_points;
  // Whether tokens were truncated.
  bool truncated = false;

  bool is_special(size_t token) const { return text_of[token] == kNoText; }
};

struct AddedTokenFlags {
  bool single_word = false, lstrip = false, rstrip = false, normalized = false;

  bool operator==(const AddedTokenFlags&) const = default;
};

struct AddedTokenSetting {
  std::string content;
  AddedTokenFlags flags;
};

// Returns the id of a token, or Tokenizer::kNoId.
using FindTokenId = std::function<uint32_t(absl::string_view token)>;

// Settings that replace parts of tokenizer.json.
struct TokenizerOverrides {
  // An object that may have a normalizer, a pre_tokenizer and options of the model.
  std::string parts = "{}";
  // Returns a post_processor, or "" to keep the file's, as without this function.
  std::function<absl::StatusOr<std::string>(const FindTokenId& find)> post_processor = nullptr;
  // The exact scores of all of a Unigram's tokens; empty: the decimals of the file.
  std::vector<double> scores;
  // Added after those of tokenizer.json, or instead of them. Known tokens get these flags.
  std::vector<AddedTokenSetting> added_tokens;
  bool drops_file_tokens = false;
  // Added after these unless known; with true, known ones get their flags too.
  std::vector<AddedTokenSetting> special_tokens;
  bool resets_special_flags = false;
  // Lower-case texts first, unless the normalizer does.
  bool lowercase = false;
  // The origin of the parts, for notes.
  std::string reason = "a setting";
};

// Immutable; thread-safe.
class Tokenizer {
 public:
  static constexpr size_t kMaxTextBytes = size_t{1} << 20;
  static constexpr uint32_t kNoId = 0xFFFFFFFF;

  // Loads tokenizer.json. Returns INVALID_ARGUMENT with an invalid key, and UNIMPLEMENTED with an
  // unsupported one. Ignores the file's truncation and padding, like transformers. Adds to
  // `notes`, unless null, a sentence for each part of the file that the overrides change.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(absl::string_view tokenizer_json,
                                                         const TokenizerOverrides& overrides = {},
                                                         std::vector<std::string>* notes = nullptr);
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(JsonValue tokenizer_json,
                                                         const TokenizerOverrides& overrides,
                                                         std::vector<std::string>* notes);

  ~Tokenizer();

  // Tokenizes a text or a pair of texts, in time proportional to their bytes, at most times the
  // length of the longest token. Returns INVALID_ARGUMENT if a text is not UTF-8 or is longer than
  // kMaxTextBytes, or if max_length leaves no room for special tokens.
  absl::StatusOr<Encoding> Encode(absl::string_view text, const EncodeOptions& options) const {
    return EncodeAll({text}, options);
  }
  absl::StatusOr<Encoding> EncodePair(absl::string_view first, absl::string_view second,
                                      const EncodeOptions& options) const {
    return EncodeAll({first, second}, options);
  }

  // Returns the maximum memory for encoding a text, including the result.
  size_t MaxEncodeBytes(absl::string_view text) const;

  // Returns the number of tokens added to a text or a pair.
  size_t special_tokens(bool is_pair) const;

  // Returns the id of a vocabulary or added token, or kNoId.
  uint32_t TokenId(absl::string_view token) const;

  // Returns a token as written in the vocabulary: "[CLS]", "##ing", "▁the", "Ġthe"; added tokens
  // that match normalized texts are returned normalized. Empty if no token has this id.
  std::string TokenText(uint32_t id) const;

  // Returns the largest possible id of a result + 1.
  uint32_t id_limit() const;

  struct Parts;  // internal

 private:
  class Run;

  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  absl::StatusOr<Encoding> EncodeAll(absl::Span<const absl::string_view> texts,
                                     const EncodeOptions& options) const;

  std::unique_ptr<const Parts> parts_;
};

}  // namespace attendant::text
