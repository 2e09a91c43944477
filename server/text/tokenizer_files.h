// Loads a checkpoint's tokenizer: tokenizer.json, or the vocabulary files of older tools, with
// changes from other settings files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

// Contents of a checkpoint's files; nullopt for missing files.
struct TokenizerFiles {
  std::optional<std::string> tokenizer_json = std::nullopt;
  std::optional<std::string> vocab_json = std::nullopt;  // these three only without tokenizer.json
  std::optional<std::string> merges_txt = std::nullopt;
  std::optional<std::string> vocab_txt = std::nullopt;
  std::optional<std::string> tokenizer_config_json = std::nullopt;  // of transformers
  // Of older versions of transformers.
  std::optional<std::string> special_tokens_map_json = std::nullopt;
  std::optional<std::string> added_tokens_json = std::nullopt;
  std::optional<std::string> config_json = std::nullopt;                // the model's
  std::optional<std::string> sentence_bert_config_json = std::nullopt;  // of sentence-transformers
  // SentencePiece models by their names, such as spm.model; only without tokenizer.json.
  std::map<std::string, std::string> sentence_pieces = {};
};

struct EffectiveTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  // Whether transformers gives models the types of tokens (Encoding::type_ids); otherwise all are
  // 0.
  bool has_types = false;
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
