#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/tokenizer_parts.h"

namespace attendant::text {
namespace {

// A part of tokenizer.json, or the text that replaces it.
class PartJson {
 public:
  // Adds a note if the two differ.
  static absl::StatusOr<PartJson> Read(const Fields& file, absl::string_view key,
                                       const std::optional<std::string>& instead,
                                       absl::string_view reason, std::vector<std::string>* notes) {
    PartJson part;
    ASSIGN_OR_RETURN(
        part.tree_,
        JsonTree::Parse(instead.has_value() ? absl::string_view(*instead) : "null", key));
    const std::optional<JsonValue> own = file.Find(key);
    if (!instead.has_value()) {
      part.value_ = own;
    } else if (notes != nullptr && !Contains(part.tree_->root(), own.value_or(part.Null()), true)) {
      notes->push_back(absl::StrCat(reason, " replaces the ", key, " of tokenizer.json"));
    }
    return part;
  }

  JsonValue value() const { return value_.value_or(tree_->root()); }

 private:
  static JsonValue Null() {
    static const JsonTree* const null = JsonTree::Parse("null", "")->release();
    return null->root();
  }

  std::unique_ptr<JsonTree> tree_;
  std::optional<JsonValue> value_;
};

absl::Status CheckVersion(const Fields& file) {
  ASSIGN_OR_RETURN(const std::string version, file.String("version", "1.0"));
  if (version != "1.0") return Unsupported("version", version, "1.0");
  return file.RequireKnown(
      "version,truncation,padding,added_tokens,normalizer,pre_tokenizer,post_processor,decoder,"
      "model");
}

absl::flat_hash_map<uint32_t, Padding> FindPadding(const Vocabulary& vocabulary) {
  absl::flat_hash_map<uint32_t, Padding> all;
  Items items;
  for (const auto& [token, id] : vocabulary) {
    items.clear();
    AppendItems(token, items);
    const Padding padding = PaddingOf(items);
    if (padding.leading > 0 || padding.trailing > 0) all[id] = padding;
  }
  return all;
}

// Whether a normalizer, or one of a sequence, lower-cases.
bool Lowercases(JsonValue normalizer) {
  if (const auto type = normalizer.Find("type"); type.has_value() && type->text() == "Lowercase") {
    return true;
  }
  if (const auto flag = normalizer.Find("lowercase")) return flag->AsBool().value_or(false);
  bool found = false;
  if (const auto list = normalizer.Find("normalizers")) {
    list->ForEach([&](absl::string_view, JsonValue step) { found = found || Lowercases(step); });
  }
  return found;
}

// Adds a note with some of the tokens.
void AddNote(absl::string_view what, const std::vector<std::string>& tokens,
             std::vector<std::string>* notes) {
  constexpr size_t kShown = 5;
  if (notes == nullptr || tokens.empty()) return;
  const std::vector<std::string> shown(tokens.begin(),
                                       tokens.begin() + std::min(tokens.size(), kShown));
  notes->push_back(absl::StrCat(
      what, " ", absl::StrJoin(shown, ", "),
      tokens.size() > kShown ? absl::StrCat(" and ", tokens.size() - kShown, " more") : ""));
}

// Adds the tokens of the file and of the settings, which may also change flags.
absl::Status AddTokens(JsonValue file, const TokenizerOverrides& overrides, AddedTokenList& tokens,
                       std::vector<std::string>* notes) {
  if (!overrides.drops_file_tokens) {
    RETURN_IF_ERROR(tokens.AddAll(file));
  }
  std::vector<std::string> added, changed;
  const auto add = [&](const AddedTokenSetting& token) {
    const bool is_new = !tokens.Has(token.content);
    const absl::StatusOr<bool> changes = tokens.Add(token);
    if (changes.ok() && *changes) (is_new ? added : changed).push_back(token.content);
    return changes.status();
  };
  for (const AddedTokenSetting& token : overrides.added_tokens) {
    RETURN_IF_ERROR(add(token));
  }
  if (overrides.drops_file_tokens) added.clear();
  AddNote("added_tokens_decoder changes the flags of", changed, notes);
  AddNote("added_tokens_decoder adds", added, notes);
  added.clear();
  for (const AddedTokenSetting& token : overrides.special_tokens) {
    const bool known = tokens.Has(token.content);
    if (known && !overrides.resets_special_flags) continue;
    RETURN_IF_ERROR(add({token.content, known ? AddedTokenFlags() : token.flags}));
  }
  AddNote(absl::StrCat(overrides.reason, " adds the special tokens"), added, notes);
  return absl::OkStatus();
}

// Replaces {{TOKEN}} by the token's id.
absl::StatusOr<std::optional<std::string>> WithIds(const std::optional<std::string>& json,
                                                   const Tokenizer::Parts& parts) {
  if (!json.has_value()) return json;
  std::string result;
  absl::string_view rest = *json;
  for (size_t at; (at = rest.find("{{")) != absl::string_view::npos;) {
    const size_t end = rest.find("}}", at);
    const absl::string_view token = rest.substr(at + 2, end - at - 2);
    const auto added = parts.added_ids.find(token);
    const uint32_t id = added == parts.added_ids.end() ? parts.model->Find(token) : added->second;
    if (id == Model::kNoId) {
      return Unexpected("tokenizer_config.json", "special tokens of the vocabulary",
                        absl::StrCat("\"", token, "\""));
    }
    absl::StrAppend(&result, rest.substr(0, at), id);
    rest = rest.substr(end + 2);
  }
  absl::StrAppend(&result, rest);
  return std::optional<std::string>(std::move(result));
}

uint32_t FindIdLimit(const Vocabulary& vocabulary, const std::vector<AddedToken>& tokens,
                     const PostProcessor& processor) {
  uint32_t limit = 0;
  const auto add = [&](uint32_t id) { limit = std::max(limit, id + 1); };
  for (const auto& [token, id] : vocabulary) add(id);
  for (const AddedToken& token : tokens) add(token.id);
  for (const bool is_pair : {false, true}) {
    for (const TemplatePart& part : processor.parts(is_pair)) {
      for (const uint32_t id : part.ids) add(id);
    }
  }
  return limit;
}

// The most characters that normalizing and splitting may make of one.
constexpr uint64_t kMaxGrowth = 2048;  // ALBERT has 1296

}  // namespace

absl::Status Tokenizer::Assemble(const TokenizerOverrides& overrides, const Fields& file,
                                 const Vocabulary& vocabulary, Parts& parts,
                                 std::vector<std::string>* notes) {
  const auto read = [&](absl::string_view key, const std::optional<std::string>& instead) {
    return PartJson::Read(file, key, instead, overrides.reason, notes);
  };
  ASSIGN_OR_RETURN(const PartJson normalizer, read("normalizer", overrides.normalizer));
  ASSIGN_OR_RETURN(parts.normalizer, LoadNormalizer(normalizer.value(), "normalizer"));
  if (overrides.lowercase && !Lowercases(normalizer.value())) {
    parts.normalizer = LowercaseBefore(std::move(parts.normalizer));
    if (notes != nullptr) notes->push_back("do_lower_case lower-cases texts before tokenizer.json");
  }
  ASSIGN_OR_RETURN(const PartJson pre, read("pre_tokenizer", overrides.pre_tokenizer));
  ASSIGN_OR_RETURN(parts.pre_tokenizer, LoadPreTokenizer(pre.value(), "pre_tokenizer"));
  const uint64_t growth = uint64_t{parts.normalizer.growth} * parts.pre_tokenizer.growth;
  if (growth > kMaxGrowth) {
    return Unsupported("normalizer", absl::StrCat("a character that may become ", growth, " is"),
                       absl::StrCat(kMaxGrowth, " or less"));
  }
  parts.growth.emplace(parts.normalizer);
  ASSIGN_OR_RETURN(const PartJson added, read("added_tokens", std::nullopt));
  AddedTokenList tokens(*parts.model);
  RETURN_IF_ERROR(AddTokens(added.value(), overrides, tokens, notes));
  for (const AddedToken& token : tokens.tokens()) parts.added_ids[token.content] = token.id;
  ASSIGN_OR_RETURN(const std::optional<std::string> processor,
                   WithIds(overrides.post_processor, parts));
  ASSIGN_OR_RETURN(const PartJson post, read("post_processor", processor));
  ASSIGN_OR_RETURN(parts.post_processor, LoadPostProcessor(post.value(), "post_processor"));
  parts.id_limit = FindIdLimit(vocabulary, tokens.tokens(), parts.post_processor);
  parts.added = AddedTokens(tokens.tokens(), parts.normalizer);
  if (!parts.post_processor.trims.empty()) parts.padding = FindPadding(vocabulary);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(absl::string_view tokenizer_json,
                                                           const TokenizerOverrides& overrides,
                                                           std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonTree> tree,
                   JsonTree::Parse(tokenizer_json, "tokenizer.json"));
  return Load(tree->root(), overrides, notes);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(JsonValue tokenizer_json,
                                                           const TokenizerOverrides& overrides,
                                                           std::vector<std::string>* notes) {
  if (!tokenizer_json.is_object()) {
    return Unexpected("tokenizer.json", "an object", tokenizer_json);
  }
  const Fields file(tokenizer_json, "");
  RETURN_IF_ERROR(CheckVersion(file));
  ASSIGN_OR_RETURN(const JsonValue json, file.Get("model"));
  ASSIGN_OR_RETURN(Fields fields, Fields::Open(json, "model"));
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonTree> options,
                   JsonTree::Parse(overrides.model.value_or("{}"), "model"));
  fields.Override(options->root());
  if (notes != nullptr && !Contains(json, options->root(), true)) {
    notes->push_back(
        absl::StrCat(overrides.reason, " replaces options of the model of tokenizer.json"));
  }
  auto parts = std::make_unique<Parts>();
  Vocabulary vocabulary;
  ASSIGN_OR_RETURN(parts->model, LoadModel(fields, overrides.scores, vocabulary));
  RETURN_IF_ERROR(Assemble(overrides, file, vocabulary, *parts, notes));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

}  // namespace attendant::text
