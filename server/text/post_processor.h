// The "post_processor" of tokenizer.json: the tokens around a text or a pair, and how places are
// trimmed. Also truncation, which knows how many tokens are added.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// A part of what is sent to the model: the tokens of a text, or special ones.
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
  // Each takes whitespace at both ends of tokens out of their places. True: but for a single space
  // at the beginning of the first one, which may be a prefix.
  std::vector<bool> trims;

  const std::vector<TemplatePart>& parts(bool is_pair) const { return is_pair ? pair : single; }
  size_t special_tokens(bool is_pair) const;
};

// Null adds no tokens. INVALID_ARGUMENT names the key below `field` that is not as expected,
// UNIMPLEMENTED what is not supported.
absl::StatusOr<PostProcessor> LoadPostProcessor(JsonValue json, const std::string& field);

// Numbers of whitespace characters at the ends of a token's text.
struct Padding {
  uint16_t leading = 0, trailing = 0;
};

// Trims the place [begin, end) of a token, in characters of the text.
void Trim(const Padding& padding, bool is_first, bool keeps_prefix, uint32_t& begin, uint32_t& end);

// The numbers of tokens that are left of each text of a pair, for `room` tokens in all: the longer
// text is cut first, then both.
std::pair<size_t, size_t> TruncatePair(size_t first, size_t second, size_t room);

}  // namespace attendant::text
