// From texts to token ids and places in the text, as Hugging Face's tokenizers do it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::text {

class Fields;

enum class TruncationSide { kRight, kLeft };

struct EncodeOptions {
  // The most tokens of a result, special ones included; 0: any number.
  size_t max_length = 0;
  bool add_special_tokens = true;
  // The side at which tokens are cut off.
  TruncationSide truncation_side = TruncationSide::kRight;
  // Whether places are wanted.
  bool places = true;
};

// A part [begin, end) of a text.
struct TextRange {
  uint32_t begin = 0, end = 0;
};

// The tokens of a text or of a pair of texts, one entry each in all of its lists.
struct Encoding {
  // The text that a token is of; kNoText for special tokens that were added.
  static constexpr uint8_t kFirst = 0, kSecond = 1, kNoText = 2;

  std::vector<uint32_t> ids;
  std::vector<uint32_t> type_ids;
  std::vector<uint8_t> text_of;
  // Places in the text that was given, empty for added tokens. Without EncodeOptions::places, both
  // lists are empty.
  std::vector<TextRange> bytes;
  std::vector<TextRange> code_points;
  // Whether tokens were cut off.
  bool truncated = false;

  bool is_special(size_t token) const { return text_of[token] == kNoText; }
};

struct AddedTokenFlags {
  bool single_word = false, lstrip = false, rstrip = false, normalized = false;
};

struct AddedTokenSetting {
  std::string content;
  AddedTokenFlags flags;
};

// Settings that replace parts of tokenizer.json, each the JSON of its part. In that of the
// post-processor, {{TOKEN}} stands for the id of a token.
struct TokenizerOverrides {
  std::optional<std::string> normalizer, pre_tokenizer, post_processor;
  // An object with options of the model, without its vocabulary.
  std::optional<std::string> model;
  // Added after those of tokenizer.json, or instead of them. Tokens that are known already get
  // these flags.
  std::vector<AddedTokenSetting> added_tokens;
  bool drops_file_tokens = false;
  // Added after these, unless they are known; with true, they get their flags even then.
  std::vector<AddedTokenSetting> special_tokens;
  bool resets_special_flags = false;
  // Texts are lower-cased before anything else, if the normalizer does not do so.
  bool lowercase = false;
  // Names the origin of the parts, for notes.
  std::string reason = "a setting";
};

// Immutable; thread-safe.
class Tokenizer {
 public:
  static constexpr size_t kMaxTextBytes = size_t{1} << 20;
  static constexpr uint32_t kNoId = 0xFFFFFFFF;

  // Reads tokenizer.json. INVALID_ARGUMENT names the key that is not as expected, UNIMPLEMENTED the
  // key of something that is not supported. Truncation and padding in the file are not used, as in
  // transformers, but for truncation_side(). `notes`, unless null, gets a sentence for each part of
  // the file that the overrides change.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(absl::string_view tokenizer_json,
                                                         const TokenizerOverrides& overrides = {},
                                                         std::vector<std::string>* notes = nullptr);

  ~Tokenizer();

  // Tokenizes a text, or a pair of texts. Takes time in proportion to their bytes, times
  // the length of the longest token at most. INVALID_ARGUMENT if a text is not UTF-8 or is longer
  // than kMaxTextBytes, or if max_length does not leave room for special tokens.
  absl::StatusOr<Encoding> Encode(absl::string_view text, const EncodeOptions& options) const;
  absl::StatusOr<Encoding> EncodePair(absl::string_view first, absl::string_view second,
                                      const EncodeOptions& options) const;

  // The most memory that encoding a text takes, with its result.
  size_t MaxEncodeBytes(absl::string_view text) const;

  // An estimate of the memory that the tokenizer holds.
  size_t memory_bytes() const;

  // The number of tokens that are added to a text or a pair.
  size_t special_tokens(bool is_pair) const;

  // The id of a token of the vocabulary or an added one, or kNoId.
  uint32_t TokenId(absl::string_view token) const;

  // How the vocabulary writes a token, an added one too: "[CLS]", "##ing", "▁the", "Ġthe"; added
  // ones that are looked for in normalized texts as these write them. Empty if there is no token
  // with this id.
  std::string TokenText(uint32_t id) const;

  // One more than the largest id that a result may have.
  uint32_t id_limit() const;

  // The side at which the file says that tokens are cut off.
  TruncationSide truncation_side() const;

  struct Parts;  // of no use outside

 private:
  class Run;

  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  // Reads all but the model, which is there.
  static absl::Status Assemble(const TokenizerOverrides& overrides, const Fields& file,
                               const std::vector<std::pair<std::string, uint32_t>>& vocabulary,
                               Parts& parts, std::vector<std::string>* notes);
  absl::StatusOr<Encoding> EncodeAll(absl::Span<const absl::string_view> texts,
                                     const EncodeOptions& options) const;

  std::unique_ptr<const Parts> parts_;
};

}  // namespace attendant::text
