// Reads token ids from a tokenizer.json and edits its text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/json.h"

namespace attendant {

// Parses the truncation, the added tokens and the model of a tokenizer.json. Of the model it keeps
// only the vocabulary, if any words are `wanted`: these words of an object, which may be very
// large, or all of a list. Values nested deeper than 64 are left out. The result is_discarded() if
// the text is not valid JSON.
Json ParseTokenizer(const std::string& tokenizer, const std::vector<std::string>& wanted = {});

// Returns the ids of the added tokens and the words that were kept, by their texts.
std::map<std::string, int32_t> ReadTokenIds(const Json& parsed);

// Returns the ids of all added tokens and of the words in the vocabulary, by their texts: at least
// of the `wanted` ones. Returns an empty map if `tokenizer` is not valid.
std::map<std::string, int32_t> ReadTokenIds(const std::string& tokenizer,
                                            const std::vector<std::string>& wanted);

struct TextTruncation {
  int64_t length = 0;  // tokens after which texts are cut; 0: they are not
  bool is_left = false;
};

// Returns what `truncation`, a member of a tokenizer.json, says.
TextTruncation ReadTruncation(const Json& truncation);
// Returns the truncation of `tokenizer`, which cuts no texts if it is not valid.
TextTruncation ReadTruncation(const std::string& tokenizer);

// Sets a member of `json`, which must be a valid JSON object, to a value that is JSON as well.
// Every other byte stays.
void SetMember(const std::string& key, absl::string_view value, std::string& json);

// Marks each text as a special token, which tokenizers match before they normalize. If a text is
// not a token, marks its first word, if that is one.
void MakeSpecial(const std::vector<std::string>& texts, std::string& tokenizer);

}  // namespace attendant
