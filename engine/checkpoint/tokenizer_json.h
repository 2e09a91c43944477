// The parts of a tokenizer.json: the ids of its tokens, and what is replaced in its text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/files/json.h"

namespace attendant {

// Returns the ids of the added tokens, and of those of `wanted` that only the vocabulary has. Empty
// if `tokenizer` is not the JSON of one.
std::map<std::string, int32_t> ReadTokenIds(const std::string& tokenizer,
                                            const std::vector<std::string>& wanted);

// Sets a member of the JSON object that `json` is known to be. Every other byte stays.
void SetMember(const std::string& key, const Json& value, std::string& json);

// Makes special tokens, which are found in a text before it is normalized, of those texts, or else
// of their first words, that are tokens already.
void MakeSpecial(const std::vector<std::string>& texts, std::string& tokenizer);

}  // namespace attendant
