#include "server/text/tokenizer_settings.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/match.h"

namespace attendant::text {
namespace {

constexpr char kExtra[] = "extra_special_tokens", kAdditional[] = "additional_special_tokens";

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

std::optional<AddedTokenSetting> AsSpecial(JsonValue value, const AddedTokenFlags& flags = {}) {
  if (value.is_string()) return AddedTokenSetting{std::string(value.text()), flags};
  absl::StatusOr<AddedTokenSetting> token = ReadAdded(value, "", true);
  if (!token.ok()) return std::nullopt;
  return *std::move(token);
}

void AddSpecial(const std::optional<JsonValue>& list, std::vector<AddedTokenSetting>& tokens) {
  if (!list.has_value()) return;
  for (const JsonValue& value : list->Elements()) {
    if (std::optional<AddedTokenSetting> token = AsSpecial(value)) {
      tokens.push_back(*std::move(token));
    }
  }
}

bool IsObject(const std::optional<JsonValue>& value) {
  return value.has_value() && value->is_object();
}

// Whether a list or an object has any.
bool HasTokens(const std::optional<JsonValue>& value) {
  return value.has_value() && value->size() > 0;
}

bool IsFilled(const std::optional<JsonValue>& list) {
  return list.has_value() && list->is_array() && list->size() > 0;
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
    absl::string_view key, const std::optional<std::string>& otherwise,
    const AddedTokenFlags& flags) const {
  std::optional<JsonValue> value;
  if (reads_older_files()) value = special.fields().json().Find(key);
  if (!value.has_value()) value = tokenizer.fields().json().Find(key);
  if (value.has_value()) return value->is_null() ? std::nullopt : AsSpecial(*value, flags);
  if (!otherwise.has_value()) return std::nullopt;
  return AddedTokenSetting{*otherwise, flags};
}

std::string TokenizerSettings::Token(absl::string_view key, absl::string_view otherwise) const {
  const std::optional<AddedTokenSetting> token = SpecialToken(key);
  return token.has_value() ? token->content : std::string(otherwise);
}

// Returns the tokens under the file's keys that not every model has. tokenizer_config.json counts
// more.
std::vector<AddedTokenSetting> TokenizerSettings::NamedTokens(const Settings& file) const {
  std::vector<AddedTokenSetting> tokens;
  file.fields().json().ForEach([&](absl::string_view key, JsonValue value) {
    const bool is_known = std::find(std::begin(kSpecialTokenKeys), std::end(kSpecialTokenKeys),
                                    key) != std::end(kSpecialTokenKeys);
    if (is_known || !absl::EndsWith(key, "_token")) return;
    const std::optional<AddedTokenSetting> token = AsSpecial(tokenizer.Find(key).value_or(value));
    if (token.has_value()) tokens.push_back(*token);
  });
  return tokens;
}

bool TokenizerSettings::lists_more_tokens() const {
  const JsonValue given = tokenizer.fields().json();
  const std::optional<JsonValue> extra = given.Find(kExtra);
  if (given.Find(kAdditional) && !HasTokens(extra)) return true;
  if (extra.has_value() && !extra->is_object()) return true;
  const std::optional<JsonValue> older = special.Find(kExtra);
  return reads_older_files() && older.has_value() && !older->is_object();
}

std::vector<AddedTokenSetting> TokenizerSettings::MoreSpecialTokens() const {
  std::vector<AddedTokenSetting> tokens = NamedTokens(tokenizer);
  const std::optional<JsonValue> extra = tokenizer.Find(kExtra);
  if (IsObject(extra)) AddSpecial(extra, tokens);
  if (tokens.empty()) AddSpecial(tokenizer.Find("model_specific_special_tokens"), tokens);
  if (IsFilled(extra)) AddSpecial(extra, tokens);
  // The older key is taken for the newer one unless that has tokens.
  if (!HasTokens(extra)) AddSpecial(tokenizer.Find(kAdditional), tokens);
  if (!reads_older_files()) return tokens;
  // Tokens under keys of the older file get the lower ids.
  const std::vector<AddedTokenSetting> named = NamedTokens(special);
  tokens.insert(tokens.begin(), named.begin(), named.end());
  const std::optional<JsonValue> older = special.Find(kExtra);
  if (IsObject(older)) AddSpecial(older, tokens);
  if (IsFilled(older)) AddSpecial(older, tokens);
  return tokens;
}

std::optional<std::vector<AddedTokenSetting>> TokenizerSettings::AdditionalTokens() const {
  std::vector<AddedTokenSetting> tokens;
  if (sentence_piece.has_value()) {
    for (const std::string& token : sentence_piece->added) tokens.push_back({token, {}});
    return tokens;
  }
  std::optional<JsonValue> list;
  if (reads_older_files()) list = special.Find(kAdditional);
  if (!list.has_value()) list = tokenizer.Find(kAdditional);
  if (!list.has_value()) return std::nullopt;
  AddSpecial(list, tokens);
  return tokens;
}

absl::StatusOr<std::vector<AddedTokenSetting>> TokenizerSettings::OlderAddedTokens(
    const std::vector<AddedTokenSetting>& special_tokens) const {
  std::vector<AddedTokenSetting> tokens;
  if (!reads_older_files()) return tokens;
  std::vector<std::pair<uint32_t, AddedTokenSetting>> by_id;
  const JsonValue all = added.fields().json();
  const std::vector<absl::string_view> keys = all.Keys();
  const std::vector<JsonValue> ids = all.Elements();
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::optional<uint32_t> id = ids[i].AsId();
    if (!id.has_value()) return Unexpected("added_tokens.json", "ids of tokens", ids[i]);
    const bool is_special =
        std::any_of(special_tokens.begin(), special_tokens.end(),
                    [&](const AddedTokenSetting& token) { return token.content == keys[i]; });
    by_id.emplace_back(*id, AddedTokenSetting{std::string(keys[i]), {.normalized = !is_special}});
  }
  std::stable_sort(by_id.begin(), by_id.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

}  // namespace attendant::text
