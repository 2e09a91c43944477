#include "server/text/tokenizer_settings.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/match.h"
#include "server/text/added_tokens.h"

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
  RETURN_IF_ERROR(ReadFlags(fields, /*required=*/false, token.flags));
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

// Whether a list or an object has any.
bool HasTokens(const std::optional<JsonValue>& value) {
  return value.has_value() && value->size() > 0;
}

using TokensById = std::vector<std::pair<int64_t, AddedTokenSetting>>;

std::vector<AddedTokenSetting> InOrder(TokensById by_id) {
  std::stable_sort(by_id.begin(), by_id.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<AddedTokenSetting> tokens;
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

}  // namespace

absl::StatusOr<TokenizerSettings> TokenizerSettings::Read(
    const std::map<std::string, std::string>& files) {
  const auto read = [&](const char* name) {
    const auto file = files.find(name);
    return Fields::Parse(file == files.end() ? "{}" : absl::string_view(file->second), name);
  };
  ASSIGN_OR_RETURN(Fields tokenizer, read("tokenizer_config.json"));
  ASSIGN_OR_RETURN(Fields special, read("special_tokens_map.json"));
  ASSIGN_OR_RETURN(Fields added, read("added_tokens.json"));
  ASSIGN_OR_RETURN(Fields model, read("config.json"));
  ASSIGN_OR_RETURN(Fields sentence, read("sentence_bert_config.json"));
  return TokenizerSettings{std::move(tokenizer), std::move(special), std::move(added),
                           std::move(model), std::move(sentence)};
}

absl::StatusOr<std::optional<std::vector<AddedTokenSetting>>> TokenizerSettings::AddedTokens()
    const {
  constexpr char kField[] = "tokenizer_config.json.added_tokens_decoder";
  const std::optional<JsonValue> decoder = tokenizer.Find("added_tokens_decoder");
  if (!decoder.has_value()) return std::nullopt;
  TokensById by_id;
  const std::vector<absl::string_view> keys = decoder->Keys();
  const std::vector<JsonValue> values = decoder->Elements();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSIGN_OR_RETURN(AddedTokenSetting token, ReadAdded(values[i], kField, false));
    by_id.emplace_back(std::strtol(std::string(keys[i]).c_str(), nullptr, 10), std::move(token));
  }
  return InOrder(std::move(by_id));
}

std::optional<AddedTokenSetting> TokenizerSettings::SpecialToken(
    absl::string_view key, const std::optional<std::string>& otherwise,
    const AddedTokenFlags& flags) const {
  std::optional<JsonValue> value;
  if (reads_older_files()) value = special.json().Find(key);
  if (!value.has_value()) value = tokenizer.json().Find(key);
  if (value.has_value()) return value->is_null() ? std::nullopt : AsSpecial(*value, flags);
  if (!otherwise.has_value()) return std::nullopt;
  return AddedTokenSetting{*otherwise, flags};
}

// Returns the tokens under the file's keys that not every model has. tokenizer_config.json counts
// more.
std::vector<AddedTokenSetting> TokenizerSettings::NamedTokens(const Fields& file) const {
  std::vector<AddedTokenSetting> tokens;
  file.json().ForEach([&](absl::string_view key, JsonValue value) {
    const bool is_known = std::find(std::begin(kSpecialTokenKeys), std::end(kSpecialTokenKeys),
                                    key) != std::end(kSpecialTokenKeys);
    if (is_known || !absl::EndsWith(key, "_token")) return;
    const std::optional<AddedTokenSetting> token = AsSpecial(tokenizer.Find(key).value_or(value));
    if (token.has_value()) tokens.push_back(*token);
  });
  return tokens;
}

bool TokenizerSettings::lists_more_tokens() const {
  const JsonValue given = tokenizer.json();
  const std::optional<JsonValue> extra = given.Find(kExtra);
  if (given.Find(kAdditional) && !HasTokens(extra)) return true;
  if (extra.has_value() && !extra->is_object()) return true;
  const std::optional<JsonValue> older = special.Find(kExtra);
  return reads_older_files() && older.has_value() && !older->is_object();
}

std::vector<AddedTokenSetting> TokenizerSettings::MoreSpecialTokens() const {
  std::vector<AddedTokenSetting> tokens = NamedTokens(tokenizer);
  const std::optional<JsonValue> extra = tokenizer.Find(kExtra);
  const bool is_object = extra.has_value() && extra->is_object();
  if (is_object) AddSpecial(extra, tokens);
  if (tokens.empty()) AddSpecial(tokenizer.Find("model_specific_special_tokens"), tokens);
  if (!is_object) AddSpecial(extra, tokens);
  // The older key is taken for the newer one unless that has tokens.
  if (!HasTokens(extra)) AddSpecial(tokenizer.Find(kAdditional), tokens);
  if (!reads_older_files()) return tokens;
  // Tokens under keys of the older file get the lower ids.
  const std::vector<AddedTokenSetting> named = NamedTokens(special);
  tokens.insert(tokens.begin(), named.begin(), named.end());
  AddSpecial(special.Find(kExtra), tokens);
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
  TokensById by_id;
  if (!reads_older_files()) return std::vector<AddedTokenSetting>();
  const JsonValue all = added.json();
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
  return InOrder(std::move(by_id));
}

}  // namespace attendant::text
