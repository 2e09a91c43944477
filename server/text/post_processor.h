// The "post_processor" of tokenizer.json, which adds tokens around a text or a pair and trims
// places. Also truncation, which depends on the number of added tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// A part of the model's input: the tokens of a text, or special tokens.
struct TemplatePart {
  enum class Kind : uint8_t { kFirst, kSecond, kSpecial };
  Kind kind;
  uint32_t type_id;
  std::vector<uint32_t> ids;  // of special tokens
};

struct PostProcessor {
  std::vector<TemplatePart> single = {{TemplatePart::Kind::kFirst, 0, {}}};
  std::vector<TemplatePart> pair = {{TemplatePart::Kind::kFirst, 0, {}},
                                    {TemplatePart::Kind::kSecond, 1, {}}};
  // Each entry trims whitespace at both ends of tokens from their places. If true, it keeps a
  // single space at the beginning of the first token, which may be a prefix.
  std::vector<bool> trims;

  const std::vector<TemplatePart>& parts(bool is_pair) const { return is_pair ? pair : single; }
  size_t special_tokens(bool is_pair) const;
};

// Loads a post-processor; null adds no tokens. Returns INVALID_ARGUMENT with the invalid key below
// `field`, and UNIMPLEMENTED for unsupported features.
absl::StatusOr<PostProcessor> LoadPostProcessor(const std::optional<JsonValue>& json,
                                                const std::string& field);

// Numbers of whitespace characters at the ends of a token's text.
struct Padding {
  uint16_t leading = 0, trailing = 0;
};

// Trims the place [begin, end) of a token, in characters of the text.
void Trim(const Padding& padding, bool is_first, bool keeps_prefix, uint32_t& begin, uint32_t& end);

// Returns the numbers of tokens to keep of each text of a pair, `room` in total: the longer text is
// truncated first, then both.
std::pair<size_t, size_t> TruncatePair(size_t first, size_t second, size_t room);

}  // namespace attendant::text
