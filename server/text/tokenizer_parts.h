// The parts of a tokenizer, and their loader.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/text/added_tokens.h"
#include "server/text/models/model.h"
#include "server/text/normalizer.h"
#include "server/text/post_processor.h"
#include "server/text/pre_tokenizer.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

struct Tokenizer::Parts {
  Normalizer normalizer;
  std::optional<CodeGrowth> growth;  // by the normalizer
  AddedTokens added;
  absl::flat_hash_map<std::string, uint32_t> added_ids;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<Model> model;
  PostProcessor post_processor;
  // For vocabulary tokens that begin or end with whitespace, if places are trimmed.
  absl::flat_hash_map<uint32_t, Padding> padding;
  uint32_t id_limit = 0;

  uint32_t TokenId(absl::string_view token) const;  // see Tokenizer::TokenId
};

// Returns the whitespace at the ends of a text.
Padding PaddingOf(ItemSpan text);

}  // namespace attendant::text
