// The settings files that change the meaning of tokenizer.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/models/sentence_piece.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

// The keys of special tokens that every model may have, in the order of their ids if they are new.
inline constexpr absl::string_view kSpecialTokenKeys[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

struct TokenizerSettings {
  // A missing file has no keys.
  static absl::StatusOr<TokenizerSettings> Read(const std::map<std::string, std::string>& files);

  Fields tokenizer, special, added, model, sentence;
  // The vocabulary, if it is a SentencePiece model.
  std::optional<SentencePieceModel> sentence_piece = std::nullopt;

  // Returns the tokens of added_tokens_decoder by ascending id; nullopt without it.
  absl::StatusOr<std::optional<std::vector<AddedTokenSetting>>> AddedTokens() const;

  // Returns a special token such as cls_token, with the flags given in a file, otherwise with
  // `flags`. Returns nullopt if a file says null or there is none.
  std::optional<AddedTokenSetting> SpecialToken(
      absl::string_view key, const std::optional<std::string>& otherwise = std::nullopt,
      const AddedTokenFlags& flags = {}) const;

  // Whether a file has a list of special tokens, even null, which replaces that of the class and of
  // the SentencePiece model.
  bool lists_more_tokens() const;

  // Returns the tokens under keys that only certain models have, such as image_token, and the
  // tokens in extra_special_tokens, or additional_special_tokens of tokenizer_config.json.
  std::vector<AddedTokenSetting> MoreSpecialTokens() const;

  // Returns the tokens that a class may change (see ClassTokens) unless
  // lists_more_tokens(): those of the SentencePiece model, or else additional_special_tokens.
  // Returns nullopt if there is no such list.
  std::optional<std::vector<AddedTokenSetting>> AdditionalTokens() const;

  // Returns the tokens of added_tokens.json by ascending id. Those in `special` are special.
  absl::StatusOr<std::vector<AddedTokenSetting>> OlderAddedTokens(
      const std::vector<AddedTokenSetting>& special) const;

 private:
  // Whether special_tokens_map.json and added_tokens.json count: only without added_tokens_decoder.
  bool reads_older_files() const { return !tokenizer.Find("added_tokens_decoder").has_value(); }

  std::vector<AddedTokenSetting> NamedTokens(const Fields& file) const;
};

}  // namespace attendant::text
