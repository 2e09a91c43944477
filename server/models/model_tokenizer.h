// The tokenizer of a served model.
#pragma once

#include <map>
#include <memory>
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
  std::string why_none = "it does not come from a folder with a tokenizer";
  double bytes_per_second = 0;  // of texts, on one core
};

// Loads the tokenizer that `files` describe (Tokenization::files), and times it. A model without
// one takes token ids all the same. `notes` gets a sentence for each setting that changes what
// tokenizer.json says.
std::shared_ptr<const ModelTokenizer> LoadModelTokenizer(
    const ModelDescription& model, const std::map<std::string, std::string>& files,
    const Clock& clock, std::vector<std::string>& notes);

// Writes into Tokenization::tokenizer_json, which clients get, what the class of the tokenizer
// builds where the file says otherwise (text::ReplacedParts). Every other byte stays.
void ApplyTokenizerClass(const std::map<std::string, std::string>& files,
                         Tokenization& tokenization);

}  // namespace attendant::server
