// The "added_tokens" of tokenizer.json: texts that are tokens wherever they occur.
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
#include "server/text/base/json_fields.h"
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

// Reads the flags of a token; absent ones stay as they are, or are errors if `required`.
absl::Status ReadFlags(const Fields& fields, bool required, AddedTokenFlags& flags);

// Assigns ids to added tokens like the original: the vocabulary's, or the next free one.
class AddedTokenList {
 public:
  // The model must outlive this object.
  explicit AddedTokenList(const Model& model) : model_(model) {}

  // Adds the tokens of a list in tokenizer.json. Returns INVALID_ARGUMENT if a token has another id
  // there.
  absl::Status AddAll(JsonValue json);

  // Adds a token, or changes the flags of one. Returns whether it did either. Returns
  // INVALID_ARGUMENT if the token is too long.
  absl::StatusOr<bool> Add(const AddedTokenSetting& token);

  bool Has(absl::string_view content) const { return known_.contains(content); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  const Model& model_;
  std::vector<AddedToken> tokens_;
  absl::flat_hash_map<std::string, size_t> known_;  // index in tokens_
  uint32_t ids_ = 0;                                // largest id + 1
};

// Immutable; thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;

  // Returns UNIMPLEMENTED for a token of which the normalizer leaves nothing: the original finds it
  // at every character.
  static absl::StatusOr<AddedTokens> Make(std::vector<AddedToken> tokens,
                                          const Normalizer& normalizer);

  // Splits [first, last) of the items at tokens that match the original or the normalized text.
  // Takes at most as many steps per byte as the longest token has bytes.
  void Find(const Items& items, Piece text, bool normalized, std::vector<Piece>& pieces) const;

  // Returns the text of the token with an id, normalized if it matches normalized texts; empty if
  // there is none.
  std::string Text(uint32_t id) const;

 private:
  // Returns the end and index of the longest token at an item, or kNoValue.
  std::pair<uint32_t, uint32_t> Longest(const Items& items, uint32_t at, uint32_t last,
                                        const ByteTrie& trie) const;

  std::vector<AddedToken> tokens_;  // ascending by id
  ByteTrie tries_[2];
  // Whether tokens begin with characters, by the low bits of their code points; most texts contain
  // none.
  static constexpr uint32_t kFirsts = 1024;
  std::array<bool, kFirsts> first_[2] = {};
};

}  // namespace attendant::text
