// The parts of a tokenizer.json that the class of the tokenizer replaces.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/files/json.h"

namespace attendant {

// Writes into `tokenizer_json` what version 5 of transformers reads of it: some classes of
// tokenizers take the vocabulary of the file, but have a normalizer, a pre-tokenizer and special
// tokens around texts of their own, which keys of tokenizer_config.json change (do_lower_case,
// strip_accents, tokenize_chinese_chars, add_prefix_space, cls_token, …). The class is that of
// tokenizer_config.json, or else of config.json, or else of the model's family. Every other byte
// stays, and all of them where the file says the same, the class is another one, or the file is not
// the JSON of a tokenizer. Says in `warnings` what was replaced.
void ApplyTokenizerClass(const Json& tokenizer_config, const Json& config,
                         std::string& tokenizer_json, std::vector<std::string>& warnings);

}  // namespace attendant
