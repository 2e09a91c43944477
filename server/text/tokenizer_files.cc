#include "server/text/tokenizer_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/model.h"
#include "server/text/models/vocabulary_files.h"
#include "server/text/tokenizer_class_forms.h"
#include "server/text/tokenizer_classes.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {
namespace {

constexpr char kSavedFile[] = "tokenizer.json, which AutoTokenizer's save_pretrained writes";

// A tokenizer.json, as published or made of other files.
struct Source {
  std::string name;  // of the files
  Fields file;
  const TokenizerClass* known;  // null: the file is used unchanged
};

// Returns the special token that a file itself names; most classes have one of their own.
std::optional<std::string> PaddingToken(const Fields& file) {
  const std::optional<JsonValue> padding = file.Find("padding");
  const auto token = padding.has_value() ? padding->Find("pad_token") : std::nullopt;
  if (!token.has_value() || !token->is_string()) return std::nullopt;
  return std::string(token->text());
}

// Sets the tokens that transformers adds to a vocabulary.
absl::Status SetAddedTokens(const TokenizerSettings& settings, const Source& source,
                            TokenizerOverrides& overrides) {
  const TokenizerClass* const known = source.known;
  ASSIGN_OR_RETURN(std::optional<std::vector<AddedTokenSetting>> listed, settings.AddedTokens());
  // Such a class builds a tokenizer from the vocabulary only.
  overrides.drops_file_tokens = known != nullptr && listed.has_value();
  if (listed.has_value()) overrides.added_tokens = *std::move(listed);
  // In the order of their ids. Of equal ones, the flags of the last count.
  std::vector<AddedTokenSetting> tokens;
  absl::flat_hash_map<std::string, size_t> places;
  const auto add = [&](AddedTokenSetting token) {
    const auto [place, is_new] = places.try_emplace(token.content, tokens.size());
    if (is_new) {
      tokens.push_back(std::move(token));
    } else {
      tokens[place->second].flags = token.flags;
    }
  };
  for (const absl::string_view key : kSpecialTokenKeys) {
    auto token = SpecialTokenOf(settings, known, key);
    if (key == "pad_token" && (known == nullptr || known->Flag("takes_padding_token"))) {
      token = settings.SpecialToken(key, PaddingToken(source.file));
    }
    if (token.has_value()) add(*std::move(token));
  }
  for (AddedTokenSetting& token : settings.MoreSpecialTokens()) add(std::move(token));
  ASSIGN_OR_RETURN(overrides.special_tokens, settings.OlderAddedTokens(tokens));
  if (!settings.lists_more_tokens()) {
    auto more = settings.AdditionalTokens().value_or(std::vector<AddedTokenSetting>());
    if (known != nullptr) {
      ASSIGN_OR_RETURN(more, ClassTokens(*known, settings));
    }
    for (AddedTokenSetting& token : more) add(std::move(token));
  }
  overrides.resets_special_flags = known != nullptr && known->Flag("resets_special_flags");
  for (AddedTokenSetting& token : tokens) {
    if (overrides.resets_special_flags) token.flags = {};
    overrides.special_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

// Returns the class for a file by the type of its model.
const TokenizerClass* ClassFor(const TokenizerSettings& settings, const std::string& json,
                               absl::string_view type) {
  const TokenizerClass* known = FindTokenizerClass(settings, json);
  return known != nullptr && known->Text("type") == type ? known : nullptr;
}

// Reads whether models get the types of tokens: model_input_names says so, or else the class.
absl::StatusOr<bool> ReadHasTypes(const TokenizerSettings& settings, const TokenizerClass* known) {
  constexpr char kKey[] = "model_input_names";
  const Fields& fields = settings.tokenizer;
  if (!fields.Find(kKey).has_value()) return known != nullptr && known->Flag("has_types");
  ASSIGN_OR_RETURN(const std::vector<JsonValue> names, fields.Array(kKey));
  return std::any_of(names.begin(), names.end(), [](const JsonValue& name) {
    return name.is_string() && name.text() == "token_type_ids";
  });
}

absl::StatusOr<Source> ReadTokenizerJson(const std::string& json,
                                         const TokenizerSettings& settings) {
  RETURN_IF_ERROR(CheckReplacesNoUnknownParts(settings));
  ASSIGN_OR_RETURN(Fields file, Fields::Parse(json, "tokenizer.json"));
  const std::optional<JsonValue> model = file.Find("model");
  const TokenizerClass* known =
      ClassFor(settings, json, model.has_value() ? ModelType(*model) : absl::string_view());
  return Source{"tokenizer.json", std::move(file), known};
}

absl::StatusOr<Source> ReadPieces(const std::string& name, const std::string& bytes,
                                  const TokenizerClass* known, TokenizerSettings& settings) {
  ASSIGN_OR_RETURN(settings.sentence_piece, ReadSentencePiece(bytes, name));
  RETURN_IF_ERROR(ChangePieces(*known, settings));
  const bool is_bpe = known->Text("type") == "BPE";
  ASSIGN_OR_RETURN(Fields file, Fields::Parse(is_bpe ? BpeJson(*settings.sentence_piece)
                                                     : UnigramJson(*settings.sentence_piece),
                                              name));
  return Source{name, std::move(file), known};
}

// Reads vocab.json and merges.txt, or vocab.txt.
absl::StatusOr<Source> ReadVocabulary(const TokenizerFiles& files, bool is_bpe,
                                      const TokenizerSettings& settings) {
  const char* name = is_bpe ? "vocab.json and merges.txt" : "vocab.txt";
  const TokenizerClass* known = ClassFor(settings, "", is_bpe ? "BPE" : "WordPiece");
  const std::optional<std::string> class_name = ClassName(settings);
  if (known == nullptr && (is_bpe || class_name.has_value())) {
    return Unsupported(
        name,
        absl::StrCat("a vocabulary of ", is_bpe ? "this tokenizer_class" : *class_name, " is"),
        kSavedFile);
  }
  if (known == nullptr) known = &BertClass();
  ASSIGN_OR_RETURN(const std::string json,
                   is_bpe ? BpeJson(files.at("vocab.json"), files.at("merges.txt"))
                          : WordPieceJson(files.at("vocab.txt")));
  ASSIGN_OR_RETURN(Fields file, Fields::Parse(json, name));
  return Source{name, std::move(file), known};
}

absl::Status RefuseSentencePiece(const std::string& file, const TokenizerSettings& settings,
                                 const TokenizerClass* known) {
  std::string name =
      ClassName(settings).value_or(settings.model.Text("model_type").value_or("an unknown class"));
  if (known != nullptr) name = known->name;
  const std::string own = known == nullptr ? "" : known->Text("sentence_piece");
  return Unsupported(file, absl::StrCat("a SentencePiece model of ", name, " is"),
                     own.empty() ? kSavedFile : absl::StrCat("the name ", own));
}

absl::StatusOr<Source> ReadSource(const TokenizerFiles& files, TokenizerSettings& settings) {
  if (const auto file = files.find("tokenizer.json"); file != files.end()) {
    return ReadTokenizerJson(file->second, settings);
  }
  const TokenizerClass* known = FindTokenizerClass(settings, "");
  if (const std::string own = known == nullptr ? "" : known->Text("sentence_piece"); !own.empty()) {
    for (const std::string& name : {std::string("tokenizer.model"), own}) {
      const auto file = files.find(name);
      if (file != files.end()) return ReadPieces(name, file->second, known, settings);
    }
  }
  const bool is_bpe = files.contains("vocab.json") && files.contains("merges.txt");
  if (is_bpe || files.contains("vocab.txt")) return ReadVocabulary(files, is_bpe, settings);
  for (const auto& [name, bytes] : files) {
    if (absl::EndsWith(name, ".model")) return RefuseSentencePiece(name, settings, known);
  }
  return absl::NotFoundError(
      "tokenizer.json: not found; add it, vocab.txt, vocab.json with merges.txt, or the "
      "SentencePiece model");
}

// Loads a source with the changes made by its class.
absl::StatusOr<EffectiveTokenizer> LoadSource(const Source& source,
                                              const TokenizerSettings& settings) {
  const auto& [name, file, known] = source;
  EffectiveTokenizer effective;
  TokenizerOverrides overrides;
  overrides.reason =
      absl::StrCat("transformers' ", known == nullptr ? "TokenizersBackend" : known->name);
  if (known != nullptr) {
    const auto part = [&](absl::string_view key, const FindTokenId& find) {
      return ClassPart(*source.known, settings, source.file, key, find);
    };
    ASSIGN_OR_RETURN(const std::string model, part("model", nullptr));
    ASSIGN_OR_RETURN(const std::string normalizer, part("normalizer", nullptr));
    ASSIGN_OR_RETURN(const std::string pre_tokenizer, part("pre_tokenizer", nullptr));
    overrides.parts = absl::StrCat(R"({"model":)", model, R"(,"normalizer":)", normalizer,
                                   R"(,"pre_tokenizer":)", pre_tokenizer, "}");
    overrides.post_processor = [part](const FindTokenId& find) {
      return part("post_processor", find);
    };
  }
  if (settings.sentence_piece.has_value()) {
    for (const SentencePiece& piece : settings.sentence_piece->pieces) {
      overrides.scores.push_back(piece.score);  // exact
    }
  }
  RETURN_IF_ERROR(SetAddedTokens(settings, source, overrides));
  ASSIGN_OR_RETURN(effective.has_types, ReadHasTypes(settings, known));
  ASSIGN_OR_RETURN(overrides.lowercase, settings.sentence.Bool("do_lower_case", false));
  const bool is_made = name != "tokenizer.json";
  if (is_made) {
    effective.notes.push_back(
        absl::StrCat("no tokenizer.json: ", overrides.reason, " is built from ", name));
  }
  ASSIGN_OR_RETURN(effective.tokenizer,
                   Tokenizer::Load(file.json(), overrides, is_made ? nullptr : &effective.notes));
  if (const auto unknown = SpecialTokenOf(settings, known, "unk_token")) {
    const uint32_t id = effective.tokenizer->TokenId(unknown->content);
    if (id != Tokenizer::kNoId) effective.unknown_id = id;
  }
  return effective;
}

absl::Status CheckFindsSpecialTokens(const TokenizerSettings& settings) {
  constexpr char kKey[] = "split_special_tokens";
  ASSIGN_OR_RETURN(const bool splits, settings.tokenizer.Bool(kKey, false));
  return splits ? Unsupported(absl::StrCat("tokenizer_config.json.", kKey), "true", "false")
                : absl::OkStatus();
}

// Returns the id of an added token of the file.
uint32_t AddedId(const Fields& file, absl::string_view token) {
  uint32_t id = Tokenizer::kNoId;
  const std::optional<JsonValue> added = file.Find("added_tokens");
  if (!added.has_value()) return id;
  added->ForEach([&](absl::string_view, JsonValue one) {
    const auto content = one.Find("content"), own = one.Find("id");
    if (content && own && content->text() == token) id = own->AsId().value_or(id);
  });
  return id;
}

}  // namespace

absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files) {
  ASSIGN_OR_RETURN(TokenizerSettings settings, TokenizerSettings::Read(files));
  RETURN_IF_ERROR(CheckNeedsNoOwnCode(settings));
  RETURN_IF_ERROR(CheckFindsSpecialTokens(settings));
  ASSIGN_OR_RETURN(const Source source, ReadSource(files, settings));
  return LoadSource(source, settings);
}

std::map<std::string, std::string> ReplacedParts(const TokenizerFiles& files) {
  std::map<std::string, std::string> replaced;
  const auto json = files.find("tokenizer.json");
  const absl::StatusOr<TokenizerSettings> settings = TokenizerSettings::Read(files);
  if (json == files.end() || !settings.ok()) return replaced;
  const absl::StatusOr<Source> source = ReadTokenizerJson(json->second, *settings);
  if (!source.ok() || source->known == nullptr) return replaced;
  const auto find = [&](absl::string_view token) { return AddedId(source->file, token); };
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor"}) {
    const absl::StatusOr<std::string> part =
        ClassPart(*source->known, *settings, source->file, key, find);
    if (!part.ok() || part->empty()) continue;
    const absl::StatusOr<std::unique_ptr<JsonTree>> wanted = JsonTree::Parse(*part, key);
    if (!wanted.ok()) continue;
    const std::optional<JsonValue> found = source->file.Find(key);
    const bool is_same =
        found ? Contains(*found, (*wanted)->root(), false) : (*wanted)->root().is_null();
    if (!is_same) replaced[key] = *part;
  }
  return replaced;
}

}  // namespace attendant::text
