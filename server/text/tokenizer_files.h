// The tokenizer of a checkpoint: tokenizer.json, or the vocabulary that older tools leave, and what
// the settings beside it change.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

// Contents of the files of a checkpoint, without those that it does not have.
struct TokenizerFiles {
  std::optional<std::string> tokenizer_json = std::nullopt;
  std::optional<std::string> vocab_json = std::nullopt;  // these three without tokenizer.json alone
  std::optional<std::string> merges_txt = std::nullopt;
  std::optional<std::string> vocab_txt = std::nullopt;
  std::optional<std::string> tokenizer_config_json = std::nullopt;      // of transformers
  std::optional<std::string> special_tokens_map_json = std::nullopt;    // of its older versions
  std::optional<std::string> config_json = std::nullopt;                // the model's
  std::optional<std::string> sentence_bert_config_json = std::nullopt;  // of sentence-transformers
};

struct EffectiveTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  // The tokens at which texts are cut, special ones included; 0 if no file says so.
  size_t max_length = 0;
  TruncationSide truncation_side = TruncationSide::kRight;
  // What the settings changed in tokenizer.json, for the log: one sentence each.
  std::vector<std::string> notes;
};

// Loads a tokenizer that gives the ids of transformers 5 with the same files: some of its classes
// take the vocabulary from tokenizer.json and build the rest by themselves (tokenizer_classes.h);
// others use the file as it is. Tokens that only the settings name are added. Without
// tokenizer.json such a class takes the vocabulary from vocab.json and merges.txt, or from
// vocab.txt. NOT_FOUND if there is none of them, UNIMPLEMENTED if no such class is known for
// vocab.json. Other errors are those of Tokenizer::Load, and name the file whose setting is not as
// expected.
absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files);

// The normalizer, pre_tokenizer and post_processor that such a class builds where tokenizer.json
// says otherwise, as JSON by their keys. Nothing if the class uses the file as it is, or if a file
// cannot be read.
std::map<std::string, std::string> ReplacedParts(const TokenizerFiles& files);

}  // namespace attendant::text
