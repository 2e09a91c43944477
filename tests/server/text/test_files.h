// A checkpoint's files by members, for tests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/text/tokenizer_files.h"

namespace attendant::text {

struct TestFiles {
  std::optional<std::string> tokenizer_json = std::nullopt;
  std::optional<std::string> vocab_json = std::nullopt;
  std::optional<std::string> merges_txt = std::nullopt;
  std::optional<std::string> vocab_txt = std::nullopt;
  std::optional<std::string> tokenizer_config_json = std::nullopt;
  std::optional<std::string> special_tokens_map_json = std::nullopt;
  std::optional<std::string> added_tokens_json = std::nullopt;
  std::optional<std::string> config_json = std::nullopt;
  std::optional<std::string> sentence_bert_config_json = std::nullopt;
  std::map<std::string, std::string> sentence_pieces = {};
};

inline absl::StatusOr<EffectiveTokenizer> LoadFiles(const TestFiles& files) {
  TokenizerFiles all = files.sentence_pieces;
  const std::pair<const char*, const std::optional<std::string>*> named[] = {
      {"tokenizer.json", &files.tokenizer_json},
      {"vocab.json", &files.vocab_json},
      {"merges.txt", &files.merges_txt},
      {"vocab.txt", &files.vocab_txt},
      {"tokenizer_config.json", &files.tokenizer_config_json},
      {"special_tokens_map.json", &files.special_tokens_map_json},
      {"added_tokens.json", &files.added_tokens_json},
      {"config.json", &files.config_json},
      {"sentence_bert_config.json", &files.sentence_bert_config_json}};
  for (const auto& [name, content] : named) {
    if (content->has_value()) all[name] = **content;
  }
  return LoadTokenizerFiles(all);
}

}  // namespace attendant::text
