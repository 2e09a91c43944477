// The tokenizer of a served model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/files/tokenization.h"
#include "engine/model/model_description.h"
#include "server/base/clock.h"
#include "server/text/tokenizer.h"

namespace attendant::server {

// Immutable.
struct ModelTokenizer {
  std::unique_ptr<const text::Tokenizer> tokenizer;  // null: texts are refused
  std::string why_none = "it was not loaded from a directory with a tokenizer";
  double bytes_per_second = 0;              // of text, on one core
  bool has_types = true;                    // the model reads the types of tokens, if it has any
  std::optional<uint32_t> unknown_id = {};  // as transformers' unk_token_id
};

// Loads and times the tokenizer described by `files` (Tokenization::files). A model without a
// tokenizer still takes token ids. Adds a sentence to `notes` for each setting that overrides
// tokenizer.json.
std::shared_ptr<const ModelTokenizer> LoadModelTokenizer(
    const ModelDescription& model, const std::map<std::string, std::string>& files,
    const Clock& clock, std::vector<std::string>& notes);

// Replaces the parts of Tokenization::tokenizer_json, which clients get, that the tokenizer's class
// builds differently (text::ReplacedParts). Does not change any other byte.
void ApplyTokenizerClass(const std::map<std::string, std::string>& files,
                         Tokenization& tokenization);

}  // namespace attendant::server
