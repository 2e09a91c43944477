#include "server/text/tokenizer_classes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/text/added_tokens.h"
#include "server/text/tokenizer_class_data.h"

namespace attendant::text {
namespace {

JsonValue Data(absl::string_view key) {
  static const JsonTree* const tree =
      JsonTree::Parse(kTokenizerClasses, "tokenizer_classes.json").value().release();
  return *tree->root().Find(key);
}

const std::vector<TokenizerClass>& Classes() {
  static const auto& classes = *[] {
    auto* made = new std::vector<TokenizerClass>;
    const JsonValue all = Data("classes");
    all.ForEach([&](absl::string_view name, JsonValue own) {
      const std::optional<JsonValue> base = own.Find("like");
      made->push_back({std::string(name), own, base ? all.Find(base->text()) : std::nullopt});
    });
    return made;
  }();
  return classes;
}

bool Lists(const std::optional<JsonValue>& list, absl::string_view text) {
  bool lists = false;
  if (!list.has_value()) return lists;
  list->ForEach([&](absl::string_view, JsonValue one) { lists = lists || one.text() == text; });
  return lists;
}

const TokenizerClass* ClassNamed(absl::string_view name) {
  if (const auto alias = Data("aliases").Find(name)) name = alias->text();
  const auto found = std::find_if(Classes().begin(), Classes().end(),
                                  [&](const TokenizerClass& known) { return known.name == name; });
  return found == Classes().end() ? nullptr : &*found;
}

}  // namespace

std::optional<JsonValue> TokenizerClass::Find(absl::string_view key) const {
  const std::optional<JsonValue> value = own.Find(key);
  return value.has_value() || !base.has_value() ? value : base->Find(key);
}

std::string TokenizerClass::Text(absl::string_view key) const {
  const std::optional<JsonValue> value = Find(key);
  return value.has_value() ? std::string(value->text()) : "";
}

bool TokenizerClass::Flag(absl::string_view key) const {
  const std::optional<JsonValue> value = Find(key);
  return value.has_value() && value->AsBool().value_or(false);
}

std::optional<std::string> ClassName(const TokenizerSettings& settings) {
  std::optional<std::string> name = settings.tokenizer.Text("tokenizer_class");
  if (!name.has_value()) name = settings.model.Text("tokenizer_class");
  return name;
}

const TokenizerClass* FindTokenizerClass(const TokenizerSettings& settings,
                                         absl::string_view tokenizer_json) {
  const std::string type = settings.model.Text("model_type").value_or("");
  const TokenizerClass* of_type = nullptr;
  for (const TokenizerClass& known : Classes()) {
    if (Lists(known.own.Find("model_types"), type)) of_type = &known;
  }
  const std::optional<std::string> name = ClassName(settings);
  if (!name.has_value()) return of_type;
  if (Lists(Data("file_model_types"), type)) return nullptr;
  // Many of its checkpoints name the class of another model.
  if (type == "qwen2") return of_type;
  const TokenizerClass* named = ClassNamed(absl::StripSuffix(*name, "Fast"));
  const bool is_llama = named != nullptr && named->name == "LlamaTokenizer";
  return is_llama && absl::StrContains(tokenizer_json, "\"ByteLevel\"") ? nullptr : named;
}

absl::Status CheckNeedsNoOwnCode(const TokenizerSettings& settings) {
  const std::string type = settings.model.Text("model_type").value_or("");
  const std::optional<std::string> name = ClassName(settings);
  absl::Status status;
  Data("own_code").ForEach([&](absl::string_view own, JsonValue of_type) {
    const bool is_own = name.has_value() ? absl::StripSuffix(*name, "Fast") == own
                                         : !type.empty() && type == of_type.text();
    if (!is_own) return;
    status = absl::UnimplementedError(
        absl::StrCat("tokenizer_class: ", own,
                     " not supported: it splits texts with custom code; send token ids"));
  });
  return status;
}

absl::Status CheckReplacesNoUnknownParts(const TokenizerSettings& settings) {
  const std::string type = settings.model.Text("model_type").value_or("");
  const std::optional<std::string> name = ClassName(settings);
  const bool overrules = Lists(Data("file_model_types"), type) || type == "qwen2";
  if (!name || overrules || !Lists(Data("own_parts"), absl::StripSuffix(*name, "Fast"))) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("tokenizer_class: ", *name, " not supported: it replaces parts of ",
                   "tokenizer.json; use PreTrainedTokenizerFast, which keeps them"));
}

const TokenizerClass& BertClass() { return *ClassNamed("BertTokenizer"); }

std::optional<JsonValue> SharedForm(absl::string_view name) { return Data("forms").Find(name); }

std::optional<AddedTokenSetting> SpecialTokenOf(const TokenizerSettings& settings,
                                                const TokenizerClass* known,
                                                absl::string_view key) {
  if (known == nullptr) return settings.SpecialToken(key);
  const std::optional<JsonValue> token = known->Find("special_tokens")->Find(key);
  AddedTokenFlags flags;
  if (const auto own = known->Find("mask_flags"); own.has_value() && key == "mask_token") {
    ReadFlags(Fields(*own, "mask_flags"), /*required=*/false, flags).IgnoreError();
  }
  return settings.SpecialToken(
      key, token.has_value() ? std::optional<std::string>(token->text()) : std::nullopt, flags);
}

}  // namespace attendant::text
