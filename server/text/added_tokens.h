// The "added_tokens" of tokenizer.json: texts that are tokens wherever they stand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/byte_trie.h"
#include "server/text/models/model.h"
#include "server/text/normalizer.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  AddedTokenFlags flags;
};

// Gives added tokens their ids as the original does: that of the vocabulary, or the one after the
// last.
class AddedTokenList {
 public:
  // The model has to outlive this object.
  explicit AddedTokenList(const Model& model) : model_(model) {}

  // Adds the tokens of a list in tokenizer.json, or of null. INVALID_ARGUMENT if one has another id
  // there.
  absl::Status AddAll(JsonValue json);

  // Adds a token, or changes the flags of one. Returns whether it did either. INVALID_ARGUMENT if
  // the token is too long.
  absl::StatusOr<bool> Add(const AddedTokenSetting& token);

  bool Has(absl::string_view content) const { return known_.contains(content); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  const Model& model_;
  std::vector<AddedToken> tokens_;
  absl::flat_hash_map<std::string, size_t> known_;  // where a text is in tokens_
  uint32_t ids_ = 0;                                // one more than the largest
};

// Immutable; thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  // Splits [first, last) of the items at tokens that are looked for in the text as it is, or as it
  // is normalized. Takes a step for each byte of the longest token at each byte at most.
  void Find(const Items& items, Piece text, bool normalized, std::vector<Piece>& pieces) const;

  // The text of the token with an id, normalized if it is looked for in normalized texts; empty if
  // there is none.
  std::string Text(uint32_t id) const;

  size_t heap_bytes() const;

  bool empty(bool normalized) const { return tries_[normalized].size() == 0; }

 private:
  // The longest token at an item: where it ends, and which it is; or kNoValue.
  std::pair<uint32_t, uint32_t> Longest(const Items& items, uint32_t at, uint32_t last,
                                        const ByteTrie& trie) const;

  // The first characters of tokens, by the last bits of their codes: most texts have none of them.
  struct FirstCharacters {
    static constexpr uint32_t kCount = 1024;
    std::array<bool, kCount> any = {};
    bool Has(char32_t code) const { return any[code % kCount]; }
  };

  std::vector<AddedToken> tokens_;  // by ascending ids
  ByteTrie tries_[2];
  FirstCharacters first_[2];
};

}  // namespace attendant::text
