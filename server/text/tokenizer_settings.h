// The settings beside tokenizer.json that change what it means.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/tokenizer.h"

namespace attendant::text {

// A file of settings; without it, no key is there. Movable.
class Settings {
 public:
  static absl::StatusOr<Settings> Read(const std::optional<std::string>& json,
                                       absl::string_view file);

  Fields fields() const { return Fields(tree_->root(), file_); }
  std::optional<JsonValue> Find(absl::string_view key) const { return fields().Find(key); }

  // A text, or the content of a token that is an object.
  std::optional<std::string> Text(absl::string_view key) const;

  // A length; those that stand for "none", such as 1e30, are none.
  size_t Length(absl::string_view key) const;

 private:
  Settings(std::unique_ptr<JsonTree> tree, std::string file)
      : tree_(std::move(tree)), file_(std::move(file)) {}

  std::unique_ptr<JsonTree> tree_;
  std::string file_;
};

struct TokenizerSettings {
  Settings tokenizer, special, model, sentence;

  // The tokens of added_tokens_decoder, by ascending ids; nothing without it.
  absl::StatusOr<std::optional<std::vector<AddedTokenSetting>>> AddedTokens() const;

  // A special token, such as cls_token: with its flags where a file has them, else with those that
  // special tokens have. Nothing if a file says null, or there is none. special_tokens_map.json
  // counts without added_tokens_decoder alone.
  std::optional<AddedTokenSetting> SpecialToken(
      absl::string_view key, const std::optional<std::string>& otherwise = std::nullopt) const;

  // The text of a special token.
  std::string Token(absl::string_view key, absl::string_view otherwise) const;

  // Those of additional_special_tokens.
  std::vector<AddedTokenSetting> MoreSpecialTokens() const;
};

}  // namespace attendant::text
