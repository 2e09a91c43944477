// Loads a checkpoint's tokenizer: tokenizer.json, or the vocabulary files of older tools, with
// changes from other settings files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

// Contents of a checkpoint's files by their names: tokenizer.json; without it vocab.txt, vocab.json
// and merges.txt, or SentencePiece models such as spm.model; tokenizer_config.json of transformers,
// special_tokens_map.json and added_tokens.json of its older versions; the model's config.json; and
// sentence_bert_config.json of sentence-transformers.
using TokenizerFiles = std::map<std::string, std::string>;

struct EffectiveTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  // Whether transformers gives models the types of tokens (Encoding::type_ids); otherwise all are
  // 0.
  bool has_types = false;
  std::optional<uint32_t> unknown_id = {};  // of the class or the settings, not of the model
  // Changes that settings made to tokenizer.json, for the log: one sentence each.
  std::vector<std::string> notes;
};

// Loads a tokenizer that returns the same ids as transformers 5 with the same files: some of its
// classes take the vocabulary from tokenizer.json and build the rest themselves
// (tokenizer_classes.h); others use the file unchanged. Tokens that only the settings list are
// added. Without tokenizer.json, such a class takes the vocabulary from its SentencePiece model,
// from vocab.json and merges.txt, or from vocab.txt. Returns NOT_FOUND without any of these,
// UNIMPLEMENTED if no class is known for the files, and otherwise the errors of Tokenizer::Load,
// with the file of an invalid setting.
absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files);

// Returns the normalizer, pre_tokenizer and post_processor that such a class builds differently
// from tokenizer.json, as JSON by key. Empty without such a class, or if a file cannot be read.
std::map<std::string, std::string> ReplacedParts(const TokenizerFiles& files);

}  // namespace attendant::text
