#include "server/text/tokenizer_settings.h"

#include <algorithm>
#include <cstdlib>

namespace attendant::text {
namespace {

// Reads a token with its flags. Tokens are looked for in normalized texts unless they are special.
absl::StatusOr<AddedTokenSetting> ReadAdded(JsonValue json, const std::string& field,
                                            bool is_special) {
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(json, field));
  ASSIGN_OR_RETURN(std::string content, fields.String("content"));
  ASSIGN_OR_RETURN(const bool special, fields.Bool("special", false));
  AddedTokenSetting token = {std::move(content), {}};
  token.flags.normalized = !(is_special || special);
  const std::pair<absl::string_view, bool*> all[] = {{"single_word", &token.flags.single_word},
                                                     {"lstrip", &token.flags.lstrip},
                                                     {"rstrip", &token.flags.rstrip},
                                                     {"normalized", &token.flags.normalized}};
  for (const auto& [key, flag] : all) {
    ASSIGN_OR_RETURN(*flag, fields.Bool(key, *flag));
  }
  return token;
}

std::optional<AddedTokenSetting> AsSpecial(JsonValue value) {
  if (value.is_string()) return AddedTokenSetting{std::string(value.text()), {}};
  absl::StatusOr<AddedTokenSetting> token = ReadAdded(value, "", true);
  if (!token.ok()) return std::nullopt;
  return *std::move(token);
}

}  // namespace

absl::StatusOr<Settings> Settings::Read(const std::optional<std::string>& json,
                                        absl::string_view file) {
  ASSIGN_OR_RETURN(auto tree,
                   JsonTree::Parse(json.has_value() ? absl::string_view(*json) : "{}", file));
  if (!tree->root().is_object()) return Unexpected(file, "an object", tree->root());
  return Settings(std::move(tree), std::string(file));
}

std::optional<std::string> Settings::Text(absl::string_view key) const {
  std::optional<JsonValue> value = Find(key);
  if (value.has_value() && value->is_object()) value = value->Find("content");
  if (!value.has_value() || !value->is_string()) return std::nullopt;
  return std::string(value->text());
}

absl::StatusOr<std::optional<std::vector<AddedTokenSetting>>> TokenizerSettings::AddedTokens()
    const {
  constexpr char kField[] = "tokenizer_config.json.added_tokens_decoder";
  const std::optional<JsonValue> decoder = tokenizer.Find("added_tokens_decoder");
  if (!decoder.has_value()) return std::nullopt;
  std::vector<std::pair<long, AddedTokenSetting>> by_id;
  const std::vector<absl::string_view> keys = decoder->Keys();
  const std::vector<JsonValue> values = decoder->Elements();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSIGN_OR_RETURN(AddedTokenSetting token, ReadAdded(values[i], kField, false));
    by_id.emplace_back(std::strtol(std::string(keys[i]).c_str(), nullptr, 10), std::move(token));
  }
  std::stable_sort(by_id.begin(), by_id.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<AddedTokenSetting> tokens;
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

std::optional<AddedTokenSetting> TokenizerSettings::SpecialToken(
    absl::string_view key, const std::optional<std::string>& otherwise) const {
  std::optional<JsonValue> value;
  if (!tokenizer.Find("added_tokens_decoder").has_value()) {
    value = special.fields().json().Find(key);
  }
  if (!value.has_value()) value = tokenizer.fields().json().Find(key);
  if (value.has_value()) return value->is_null() ? std::nullopt : AsSpecial(*value);
  if (!otherwise.has_value()) return std::nullopt;
  return AddedTokenSetting{*otherwise, {}};
}

std::string TokenizerSettings::Token(absl::string_view key, absl::string_view otherwise) const {
  const std::optional<AddedTokenSetting> token = SpecialToken(key);
  return token.has_value() ? token->content : std::string(otherwise);
}

std::vector<AddedTokenSetting> TokenizerSettings::MoreSpecialTokens() const {
  std::vector<AddedTokenSetting> tokens;
  for (const absl::string_view key : {"extra_special_tokens", "additional_special_tokens"}) {
    const std::optional<JsonValue> list = tokenizer.Find(key);
    if (!list.has_value() || !list->is_array() || list->size() == 0) continue;
    for (const JsonValue& value : list->Elements()) {
      if (std::optional<AddedTokenSetting> token = AsSpecial(value)) tokens.push_back(*token);
    }
    break;
  }
  return tokens;
}

}  // namespace attendant::text
