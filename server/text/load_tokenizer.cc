#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/tokenizer_parts.h"

namespace attendant::text {
namespace {

// The most characters that normalizing and splitting may make of one.
constexpr uint64_t kMaxGrowth = 2048;  // ALBERT has 1296

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

// Loads the parts of a file, or those that replace them.
class PartLoader {
 public:
  PartLoader(const Fields& file, const TokenizerOverrides& overrides,
             std::vector<std::string>* notes)
      : file_(file), overrides_(overrides), notes_(notes) {}

  absl::Status Load(Tokenizer::Parts& parts) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<JsonTree> instead,
                     JsonTree::Parse(overrides_.parts, overrides_.reason));
    Vocabulary vocabulary;
    ASSIGN_OR_RETURN(const Fields model, ModelFields(instead->root()));
    ASSIGN_OR_RETURN(parts.model, LoadModel(model, overrides_.scores, vocabulary));
    RETURN_IF_ERROR(LoadSteps(instead->root(), parts));
    AddedTokenList tokens(*parts.model);
    RETURN_IF_ERROR(AddTokens(tokens));
    for (const AddedToken& token : tokens.tokens()) parts.added_ids[token.content] = token.id;
    RETURN_IF_ERROR(LoadEnds(parts));
    parts.id_limit = FindIdLimit(vocabulary, tokens.tokens(), parts.post_processor);
    ASSIGN_OR_RETURN(parts.added, AddedTokens::Make(tokens.tokens(), parts.normalizer));
    if (!parts.post_processor.trims.empty()) parts.padding = FindPadding(vocabulary);
    return absl::OkStatus();
  }

 private:
  void Note(const std::string& note) const {
    if (notes_ != nullptr) notes_->push_back(note);
  }

  // Notes some of the tokens.
  void NoteTokens(absl::string_view what, const std::vector<std::string>& tokens) const {
    constexpr size_t kShown = 5;
    if (tokens.empty()) return;
    const std::vector<std::string> shown(tokens.begin(),
                                         tokens.begin() + std::min(tokens.size(), kShown));
    Note(absl::StrCat(
        what, " ", absl::StrJoin(shown, ", "),
        tokens.size() > kShown ? absl::StrCat(" and ", tokens.size() - kShown, " more") : ""));
  }

  // Returns the part of the file, or the one that replaces it, which may be null.
  std::optional<JsonValue> Part(absl::string_view key, JsonValue instead) const {
    const std::optional<JsonValue> own = file_.Find(key), other = instead.Find(key);
    if (!other.has_value()) return own;
    if (!(own.has_value() ? Contains(*other, *own, true) : other->is_null())) {
      Note(absl::StrCat(overrides_.reason, " replaces the ", key, " of tokenizer.json"));
    }
    return other;
  }

  absl::StatusOr<Fields> ModelFields(JsonValue instead) const {
    ASSIGN_OR_RETURN(Fields model, file_.Object("model"));
    const std::optional<JsonValue> options = instead.Find("model");
    if (!options.has_value()) return model;
    if (!Contains(model.json(), *options, true)) {
      Note(absl::StrCat(overrides_.reason, " replaces options of the model of tokenizer.json"));
    }
    model.Override(*options);
    return model;
  }

  absl::Status LoadSteps(JsonValue instead, Tokenizer::Parts& parts) const {
    const std::optional<JsonValue> normalizer = Part("normalizer", instead);
    ASSIGN_OR_RETURN(parts.normalizer, LoadNormalizer(normalizer, "normalizer"));
    if (overrides_.lowercase && !(normalizer.has_value() && Lowercases(*normalizer))) {
      parts.normalizer = LowercaseBefore(std::move(parts.normalizer));
      Note("do_lower_case lower-cases texts before tokenizer.json");
    }
    ASSIGN_OR_RETURN(parts.pre_tokenizer,
                     LoadPreTokenizer(Part("pre_tokenizer", instead), "pre_tokenizer"));
    const uint64_t growth = uint64_t{parts.normalizer.growth} * parts.pre_tokenizer.growth;
    if (growth > kMaxGrowth) {
      return Unsupported("normalizer", absl::StrCat("a character that may become ", growth, " is"),
                         absl::StrCat(kMaxGrowth, " or less"));
    }
    parts.growth.emplace(parts.normalizer);
    return absl::OkStatus();
  }

  // Adds the tokens of the file and of the settings, which may also change flags.
  absl::Status AddTokens(AddedTokenList& tokens) const {
    const std::optional<JsonValue> listed = file_.Find("added_tokens");
    if (listed.has_value() && !overrides_.drops_file_tokens) {
      RETURN_IF_ERROR(tokens.AddAll(*listed));
    }
    std::vector<std::string> added, changed;
    const auto add = [&](const AddedTokenSetting& token) {
      const bool is_new = !tokens.Has(token.content);
      const absl::StatusOr<bool> changes = tokens.Add(token);
      if (changes.ok() && *changes) (is_new ? added : changed).push_back(token.content);
      return changes.status();
    };
    for (const AddedTokenSetting& token : overrides_.added_tokens) {
      RETURN_IF_ERROR(add(token));
    }
    if (overrides_.drops_file_tokens) added.clear();
    NoteTokens("added_tokens_decoder changes the flags of", changed);
    NoteTokens("added_tokens_decoder adds", added);
    added.clear();
    for (const AddedTokenSetting& token : overrides_.special_tokens) {
      const bool known = tokens.Has(token.content);
      if (known && !overrides_.resets_special_flags) continue;
      RETURN_IF_ERROR(add({token.content, known ? AddedTokenFlags() : token.flags}));
    }
    NoteTokens(absl::StrCat(overrides_.reason, " adds the special tokens"), added);
    return absl::OkStatus();
  }

  absl::Status LoadEnds(Tokenizer::Parts& parts) const {
    std::string own;
    if (overrides_.post_processor != nullptr) {
      const auto find = [&](absl::string_view token) { return parts.TokenId(token); };
      ASSIGN_OR_RETURN(own, overrides_.post_processor(find));
    }
    if (!own.empty()) own = absl::StrCat(R"("post_processor":)", own);
    ASSIGN_OR_RETURN(const std::unique_ptr<JsonTree> instead,
                     JsonTree::Parse(absl::StrCat("{", own, "}"), overrides_.reason));
    ASSIGN_OR_RETURN(parts.post_processor,
                     LoadPostProcessor(Part("post_processor", instead->root()), "post_processor"));
    return absl::OkStatus();
  }

  const Fields& file_;
  const TokenizerOverrides& overrides_;
  std::vector<std::string>* const notes_;
};

}  // namespace

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
  auto parts = std::make_unique<Parts>();
  RETURN_IF_ERROR(PartLoader(file, overrides, notes).Load(*parts));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

}  // namespace attendant::text
