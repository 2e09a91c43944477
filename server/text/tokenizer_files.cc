#include "server/text/tokenizer_files.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/vocabulary_files.h"
#include "server/text/tokenizer_classes.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {
namespace {

constexpr char kSavedFile[] = "tokenizer.json, which AutoTokenizer's save_pretrained writes";

absl::StatusOr<TokenizerSettings> ReadSettings(const TokenizerFiles& files) {
  ASSIGN_OR_RETURN(auto tokenizer,
                   Settings::Read(files.tokenizer_config_json, "tokenizer_config.json"));
  ASSIGN_OR_RETURN(auto special,
                   Settings::Read(files.special_tokens_map_json, "special_tokens_map.json"));
  ASSIGN_OR_RETURN(auto added, Settings::Read(files.added_tokens_json, "added_tokens.json"));
  ASSIGN_OR_RETURN(auto model, Settings::Read(files.config_json, "config.json"));
  ASSIGN_OR_RETURN(auto sentence,
                   Settings::Read(files.sentence_bert_config_json, "sentence_bert_config.json"));
  return TokenizerSettings{std::move(tokenizer), std::move(special), std::move(added),
                           std::move(model), std::move(sentence)};
}

// Special tokens in the order of their ids. Of equal ones, the flags of the last count.
class SpecialTokens {
 public:
  void Add(AddedTokenSetting token) {
    const auto [place, is_new] = places_.try_emplace(token.content, tokens_.size());
    if (is_new) {
      tokens_.push_back(std::move(token));
    } else {
      tokens_[place->second].flags = token.flags;
    }
  }

  void AddAll(std::vector<AddedTokenSetting> tokens) {
    for (AddedTokenSetting& token : tokens) Add(std::move(token));
  }

  const std::vector<AddedTokenSetting>& tokens() const { return tokens_; }

 private:
  std::vector<AddedTokenSetting> tokens_;
  absl::flat_hash_map<std::string, size_t> places_;
};

// Sets the tokens that transformers adds to a vocabulary.
absl::Status SetAddedTokens(const TokenizerSettings& settings, const TokenizerClass* known,
                            TokenizerOverrides& overrides) {
  ASSIGN_OR_RETURN(std::optional<std::vector<AddedTokenSetting>> listed, settings.AddedTokens());
  // Such a class builds a tokenizer from the vocabulary only.
  overrides.drops_file_tokens = known != nullptr && listed.has_value();
  if (listed.has_value()) overrides.added_tokens = *std::move(listed);
  SpecialTokens special;
  for (const absl::string_view key : kSpecialTokenKeys) {
    if (auto token = SpecialTokenOf(settings, known, key)) special.Add(*std::move(token));
  }
  special.AddAll(settings.MoreSpecialTokens());
  ASSIGN_OR_RETURN(overrides.special_tokens, settings.OlderAddedTokens(special.tokens()));
  if (!settings.lists_more_tokens()) {
    std::optional<std::vector<AddedTokenSetting>> tokens = settings.AdditionalTokens();
    if (known != nullptr && known->change_tokens != nullptr) known->change_tokens(settings, tokens);
    if (tokens.has_value()) special.AddAll(*std::move(tokens));
  }
  overrides.special_tokens.insert(overrides.special_tokens.end(), special.tokens().begin(),
                                  special.tokens().end());
  if (known != nullptr) overrides.resets_special_flags = known->resets_special_flags;
  return absl::OkStatus();
}

// Returns the class for a file by the type of its model.
const TokenizerClass* ClassFor(const TokenizerSettings& settings, const std::string& json,
                               absl::string_view type) {
  const TokenizerClass* known = FindTokenizerClass(settings, json);
  return known != nullptr && known->model == type ? known : nullptr;
}

// Reads whether models get the types of tokens: model_input_names says so, or else the class.
absl::StatusOr<bool> ReadHasTypes(const TokenizerSettings& settings, const TokenizerClass* known) {
  constexpr char kKey[] = "model_input_names";
  const Fields fields = settings.tokenizer.fields();
  if (!fields.Find(kKey).has_value()) return known != nullptr && known->has_types;
  ASSIGN_OR_RETURN(const std::vector<JsonValue> names, fields.Array(kKey));
  return std::any_of(names.begin(), names.end(), [](const JsonValue& name) {
    return name.is_string() && name.text() == "token_type_ids";
  });
}

// Returns the exact scores of a model's pieces.
std::vector<double> ScoresOf(const SentencePieceModel& model) {
  std::vector<double> scores;
  scores.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces) scores.push_back(piece.score);
  return scores;
}

// Loads the file with the changes made by its class; null changes nothing.
absl::Status LoadAs(const TokenizerClass* known, const Fields& file,
                    const TokenizerSettings& settings, std::vector<std::string>* notes,
                    EffectiveTokenizer& effective) {
  TokenizerOverrides overrides;
  overrides.reason =
      absl::StrCat("transformers' ", known == nullptr ? "TokenizersBackend" : known->name);
  if (known != nullptr) {
    RETURN_IF_ERROR(known->parts(settings, file, overrides));
  }
  if (settings.sentence_piece.has_value()) overrides.scores = ScoresOf(*settings.sentence_piece);
  RETURN_IF_ERROR(SetAddedTokens(settings, known, overrides));
  ASSIGN_OR_RETURN(effective.has_types, ReadHasTypes(settings, known));
  ASSIGN_OR_RETURN(overrides.lowercase, settings.sentence.fields().Bool("do_lower_case", false));
  ASSIGN_OR_RETURN(effective.tokenizer, Tokenizer::Load(file.json(), overrides, notes));
  return absl::OkStatus();
}

// Returns the class of a tokenizer.json; null if the file is used unchanged.
const TokenizerClass* ClassOf(const std::string& json, const Settings& file,
                              const TokenizerSettings& settings) {
  const std::optional<JsonValue> model = file.Find("model");
  const std::optional<JsonValue> type = model.has_value() ? model->Find("type") : std::nullopt;
  return ClassFor(settings, json, type.has_value() ? type->text() : absl::string_view());
}

// Replaces each {{TOKEN}} in the JSON of a part by the id of that added token of the file. Returns
// nullopt if there is no such token.
std::optional<std::string> WithAddedIds(const std::string& part, const Settings& file) {
  std::vector<std::pair<std::string, std::string>> ids;
  if (const std::optional<JsonValue> added = file.Find("added_tokens")) {
    for (const JsonValue& token : added->Elements()) {
      const auto content = token.Find("content"), id = token.Find("id");
      if (!content || !id) continue;
      ids.emplace_back(absl::StrCat("{{", content->text(), "}}"), id->text());
    }
  }
  std::string json = absl::StrReplaceAll(part, ids);
  if (absl::StrContains(json, "{{")) return std::nullopt;
  return json;
}

absl::Status LoadFile(const std::string& json, const TokenizerSettings& settings,
                      EffectiveTokenizer& effective) {
  ASSIGN_OR_RETURN(const Settings file, Settings::Read(json, "tokenizer.json"));
  const TokenizerClass* known = ClassOf(json, file, settings);
  return LoadAs(known, file.fields(), settings, &effective.notes, effective);
}

// Returns the SentencePiece model that a class reads: tokenizer.model for every class.
const std::pair<const std::string, std::string>* SentencePieceFor(const TokenizerFiles& files,
                                                                  const TokenizerClass* known) {
  if (known == nullptr || known->sentence_piece.empty()) return nullptr;
  auto found = files.sentence_pieces.find("tokenizer.model");
  if (found == files.sentence_pieces.end()) {
    found = files.sentence_pieces.find(std::string(known->sentence_piece));
  }
  return found == files.sentence_pieces.end() ? nullptr : &*found;
}

absl::Status RefuseSentencePiece(const TokenizerFiles& files, const TokenizerSettings& settings,
                                 const TokenizerClass* known) {
  std::string name =
      ClassName(settings).value_or(settings.model.Text("model_type").value_or("an unknown class"));
  if (known != nullptr) name = std::string(known->name);
  const bool is_misnamed = known != nullptr && !known->sentence_piece.empty();
  return Unsupported(files.sentence_pieces.begin()->first,
                     absl::StrCat("a SentencePiece model of ", name, " is"),
                     is_misnamed ? absl::StrCat("the name ", known->sentence_piece) : kSavedFile);
}

// Of a SentencePiece model.
absl::Status LoadSentencePiece(const std::pair<const std::string, std::string>& model,
                               const TokenizerClass& known, TokenizerSettings& settings,
                               EffectiveTokenizer& effective) {
  const auto& [name, bytes] = model;
  ASSIGN_OR_RETURN(settings.sentence_piece, ReadSentencePiece(bytes, name));
  SentencePieceModel& pieces = *settings.sentence_piece;
  if (known.pieces != nullptr) {
    RETURN_IF_ERROR(known.pieces(settings, pieces));
  }
  ASSIGN_OR_RETURN(
      const Settings file,
      Settings::Read(known.model == "BPE" ? BpeJson(pieces) : UnigramJson(pieces), name));
  effective.notes.push_back(
      absl::StrCat("no tokenizer.json: transformers' ", known.name, " is built from ", name));
  return LoadAs(&known, file.fields(), settings, nullptr, effective);
}

// Of vocab.json and merges.txt, or of vocab.txt.
absl::Status LoadVocabulary(const TokenizerFiles& files, const TokenizerSettings& settings,
                            EffectiveTokenizer& effective) {
  const bool is_bpe = files.vocab_json.has_value() && files.merges_txt.has_value();
  const char* name = is_bpe ? "vocab.json and merges.txt" : "vocab.txt";
  const TokenizerClass* known = ClassFor(settings, "", is_bpe ? "BPE" : "WordPiece");
  if (known == nullptr && is_bpe) {
    return Unsupported(name, "a vocabulary of this tokenizer_class is", kSavedFile);
  }
  if (const std::optional<std::string> class_name = ClassName(settings);
      known == nullptr && class_name.has_value()) {
    return Unsupported(name, absl::StrCat("a vocabulary of ", *class_name, " is"), kSavedFile);
  }
  if (known == nullptr) known = &BertClass();
  ASSIGN_OR_RETURN(const std::string json, is_bpe ? BpeJson(*files.vocab_json, *files.merges_txt)
                                                  : WordPieceJson(*files.vocab_txt));
  ASSIGN_OR_RETURN(const Settings file, Settings::Read(json, name));
  effective.notes.push_back(
      absl::StrCat("no tokenizer.json: transformers' ", known->name, " is built from ", name));
  return LoadAs(known, file.fields(), settings, nullptr, effective);
}

absl::Status CheckFindsSpecialTokens(const TokenizerSettings& settings) {
  constexpr char kKey[] = "split_special_tokens";
  ASSIGN_OR_RETURN(const bool splits, settings.tokenizer.fields().Bool(kKey, false));
  return splits ? Unsupported(absl::StrCat("tokenizer_config.json.", kKey), "true", "false")
                : absl::OkStatus();
}

}  // namespace

absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files) {
  ASSIGN_OR_RETURN(TokenizerSettings settings, ReadSettings(files));
  RETURN_IF_ERROR(CheckNeedsNoOwnCode(settings));
  RETURN_IF_ERROR(CheckFindsSpecialTokens(settings));
  EffectiveTokenizer effective;
  absl::Status status = absl::NotFoundError(
      "tokenizer.json: not found; add it, vocab.txt, vocab.json with merges.txt, or the "
      "SentencePiece model");
  const TokenizerClass* known = FindTokenizerClass(settings, "");
  if (files.tokenizer_json.has_value()) {
    status = LoadFile(*files.tokenizer_json, settings, effective);
  } else if (const auto* pieces = SentencePieceFor(files, known)) {
    status = LoadSentencePiece(*pieces, *known, settings, effective);
  } else if (files.vocab_txt.has_value() ||
             (files.vocab_json.has_value() && files.merges_txt.has_value())) {
    status = LoadVocabulary(files, settings, effective);
  } else if (!files.sentence_pieces.empty()) {
    status = RefuseSentencePiece(files, settings, known);
  }
  if (!status.ok()) return status;
  return effective;
}

std::map<std::string, std::string> ReplacedParts(const TokenizerFiles& files) {
  std::map<std::string, std::string> replaced;
  if (!files.tokenizer_json.has_value()) return replaced;
  const absl::StatusOr<TokenizerSettings> settings = ReadSettings(files);
  const absl::StatusOr<Settings> file = Settings::Read(files.tokenizer_json, "tokenizer.json");
  if (!settings.ok() || !file.ok()) return replaced;
  const TokenizerClass* known = ClassOf(*files.tokenizer_json, *file, *settings);
  TokenizerOverrides parts;
  if (known == nullptr || !known->parts(*settings, file->fields(), parts).ok()) return replaced;
  for (const auto& [key, part] :
       {std::pair{"normalizer", parts.normalizer}, std::pair{"pre_tokenizer", parts.pre_tokenizer},
        std::pair{"post_processor", parts.post_processor}}) {
    const std::optional<std::string> json = part ? WithAddedIds(*part, *file) : std::nullopt;
    const auto wanted = JsonTree::Parse(json.value_or(""), key);
    if (!wanted.ok()) continue;
    const std::optional<JsonValue> found = file->Find(key);
    const bool is_same =
        found ? Contains(*found, (*wanted)->root(), false) : (*wanted)->root().is_null();
    if (!is_same) replaced[key] = *json;
  }
  return replaced;
}

}  // namespace attendant::text
