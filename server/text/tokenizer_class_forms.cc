#include "server/text/tokenizer_class_forms.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/score.h"

namespace attendant::text {
namespace {

constexpr char kNull[] = "null";

std::string FlagJson(bool flag) { return flag ? "true" : "false"; }

// Returns the elements of a list, without its brackets.
std::string Elements(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    absl::StrAppend(&all, all.empty() ? "" : ",", QuoteJson(text));
  }
  return all;
}

// Returns the map of characters in a file's normalizer, alone or in a sequence; or null.
std::string CharsmapJson(const Fields& file) {
  const std::optional<JsonValue> normalizer = file.Find("normalizer");
  if (!normalizer.has_value()) return kNull;
  std::vector<JsonValue> steps = {*normalizer};
  if (const auto list = normalizer->Find("normalizers")) steps = list->Elements();
  for (const JsonValue& step : steps) {
    if (const auto map = step.Find("precompiled_charsmap")) {
      return absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":)",
                          QuoteJson(map->text()), "}");
    }
  }
  return kNull;
}

// Returns the place of the unknown token with a score of 0, which some classes look for; or null.
std::string UnknownPlace(const Fields& file, const std::string& unk) {
  const std::optional<JsonValue> model = file.Find("model");
  const std::optional<JsonValue> list = model ? model->Find("vocab") : std::nullopt;
  if (!list || !list->is_array()) return kNull;
  const std::vector<JsonValue> pieces = list->Elements();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<JsonValue> pair = pieces[i].Elements();
    if (pair.size() == 2 && pair[0].text() == unk && ParseScore(pair[1].text()) == 0) {
      return absl::StrCat(i);
    }
  }
  return kNull;
}

bool IsSentinel(absl::string_view token) { return absl::StrContains(token, "<extra_id_"); }

// Fills in forms. Keeps the first error, after which results are arbitrary.
class FormWriter {
 public:
  // Without `file`, only lists of tokens and pieces can be written.
  FormWriter(const TokenizerClass& known, const TokenizerSettings& settings,
             const Fields* file = nullptr, const FindTokenId* find = nullptr)
      : known_(known), settings_(settings), file_(file), find_(find) {}

  // Returns JSON; "" if the form leaves the value out.
  std::string Write(JsonValue form);

  // Returns the texts of a list in a group of the class, with their scores.
  std::vector<SentencePiece> List(absl::string_view group, absl::string_view key);

  const absl::Status& status() const { return status_; }

 private:
  std::string Value(absl::string_view name);
  std::optional<std::string> FileValue(absl::string_view name);
  std::optional<std::string> ListValue(absl::string_view name);
  std::optional<std::string> Token(absl::string_view name);
  std::optional<std::string> SentenceMask(const std::string& otherwise) const;
  std::vector<std::string> OwnTokens() const;
  uint32_t Count(absl::string_view key, uint32_t otherwise) const;
  bool Flag(absl::string_view key);
  std::string Template(const std::vector<JsonValue>& texts);
  std::string Id(absl::string_view token);
  void Keep(const absl::Status& status) { status_.Update(status); }

  const TokenizerClass& known_;
  const TokenizerSettings& settings_;
  const Fields* const file_;
  const FindTokenId* const find_;
  absl::Status status_;
};

std::string FormWriter::Write(JsonValue form) {
  if (form.is_string()) {
    absl::string_view text = form.text();
    return absl::ConsumePrefix(&text, "$") ? Value(text) : QuoteJson(text);
  }
  if (const auto choice = form.Find("choose")) {
    const std::vector<JsonValue> parts = choice->Elements();
    const std::string condition = Value(parts[0].text());
    return Write(parts[condition == kNull || condition == FlagJson(false) ? 2 : 1]);
  }
  if (const auto texts = form.Find("template")) return Template(texts->Elements());
  if (const auto token = form.Find("id_of")) {
    return Id(Token(token->text().substr(1)).value_or(""));
  }
  if (!form.is_array() && !form.is_object()) return form.Describe();
  std::string all;
  form.ForEach([&](absl::string_view key, JsonValue value) {
    const std::string written = Write(value);
    if (written.empty() || (form.is_array() && written == kNull)) return;
    absl::StrAppend(&all, all.empty() ? "" : ",",
                    form.is_object() ? absl::StrCat(QuoteJson(key), ":") : "", written);
  });
  return form.is_array() ? absl::StrCat("[", all, "]") : absl::StrCat("{", all, "}");
}

std::vector<SentencePiece> FormWriter::List(absl::string_view group, absl::string_view key) {
  std::vector<SentencePiece> list;
  const std::optional<JsonValue> lists = known_.Find(group);
  const std::optional<JsonValue> form = lists ? lists->Find(key) : std::nullopt;
  if (!form.has_value()) return list;
  const absl::StatusOr<std::unique_ptr<JsonTree>> tree = JsonTree::Parse(Write(*form), key);
  Keep(tree.status());
  if (!tree.ok()) return list;
  for (const JsonValue& one : (*tree)->root().Elements()) {
    const std::vector<JsonValue> scored = one.Elements();
    if (scored.empty()) {
      list.push_back({std::string(one.text())});
    } else {
      list.push_back({std::string(scored[0].text()),
                      static_cast<float>(ParseScore(scored[1].text()).value_or(0))});
    }
  }
  return list;
}

std::string FormWriter::Value(absl::string_view name) {
  if (const std::optional<JsonValue> form = SharedForm(name)) return Write(*form);
  const std::optional<JsonValue> flags = known_.Find("settings");
  if (const auto otherwise = flags ? flags->Find(name) : std::nullopt) {
    const bool is_given = settings_.tokenizer.Find(name).has_value();
    return is_given ? FlagJson(Flag(name)) : otherwise->Describe();
  }
  if (name == "file") return "";
  if (const auto value = file_ == nullptr ? ListValue(name) : FileValue(name)) return *value;
  const std::optional<std::string> token = Token(name);
  return token.has_value() ? QuoteJson(*token) : "";
}

// Returns a value for parts; nullopt for other names.
std::optional<std::string> FormWriter::FileValue(absl::string_view name) {
  if (name == "charsmap") return CharsmapJson(*file_);
  if (name == "has_sentence_piece") return FlagJson(settings_.sentence_piece.has_value());
  // The class sets its own, and after that another one if tokenizer.json had none.
  if (name == "has_file_ends") {
    return FlagJson(!settings_.sentence_piece && file_->Find("post_processor"));
  }
  if (name == "names_added_ends") {
    const JsonValue given = settings_.tokenizer.json();
    return FlagJson(given.Find("add_bos_token") || given.Find("add_eos_token"));
  }
  if (name == "unk_place") return UnknownPlace(*file_, *Token("unk_token"));
  if (name == "required_unk") {
    Keep(Unexpected("model.vocab", absl::StrCat("\"", *Token("unk_token"), "\" with a score of 0"),
                    "none"));
    return "";
  }
  if (name == "named_unk_id") {
    if (settings_.sentence_piece) return absl::StrCat(settings_.sentence_piece->unk_id);
    const std::optional<JsonValue> given = settings_.tokenizer.Find("unk_id");
    return absl::StrCat(given.has_value() ? given->AsId().value_or(1) : 1);
  }
  return std::nullopt;
}

// Returns the value of a name that stands for tokens or pieces in a list, possibly ""; nullopt for
// other names.
std::optional<std::string> FormWriter::ListValue(absl::string_view name) {
  std::vector<std::string> all;
  if (name == "languages") {
    for (const JsonValue& one : known_.Find(name)->Elements()) all.emplace_back(one.text());
  } else if (name == "sentinels") {
    const std::vector<std::string> own = OwnTokens();
    const uint32_t count = Count("extra_ids", 100);
    const auto found = static_cast<uint32_t>(std::count_if(own.begin(), own.end(), IsSentinel));
    if (found > 0 && count > 0 && found != count) {
      Keep(Unexpected("tokenizer_config.json.extra_ids",
                      absl::StrCat("0 or ", found, ", as in ", settings_.sentence_piece->file),
                      absl::StrCat(count)));
    }
    for (uint32_t i = count; i > 0; --i) all.push_back(absl::StrCat("<extra_id_", i - 1, ">"));
  } else if (name == "missing_sentinels") {
    const std::vector<std::string> own = OwnTokens();
    const bool has_some = std::any_of(own.begin(), own.end(), IsSentinel);
    const uint32_t count = has_some ? 0 : Count("extra_ids", 100);
    for (uint32_t i = 0; i < count; ++i) all.push_back(absl::StrCat("<extra_id_", i, ">"));
  } else if (name == "unlisted_mask") {
    const std::optional<std::string> mask = SentenceMask("<mask_1>");
    const std::vector<std::string> own = OwnTokens();
    // The tokens of a SentencePiece model are objects, and the class compares its mask with
    // strings.
    const bool is_listed = mask.has_value() && !settings_.sentence_piece.has_value() &&
                           std::find(own.begin(), own.end(), *mask) != own.end();
    if (mask.has_value() && !is_listed) all.push_back(*mask);
  } else if (name == "masks") {
    const auto mask = settings_.SpecialToken("mask_token", "<mask_1>");
    const std::optional<std::string> sentence_mask = SentenceMask("<mask_2>");
    if (mask.has_value()) all.push_back(mask->content);
    if (sentence_mask && (!mask || *sentence_mask != mask->content)) all.push_back(*sentence_mask);
  } else if (name == "unknowns") {
    std::string written;
    const uint32_t count = Count("offset", 103);
    for (uint32_t i = 2; i < count; ++i) {
      absl::StrAppend(&written, i > 2 ? "," : "", "[\"<unk_", i, ">\",-100]");  // is never chosen
    }
    return written;
  } else {
    return std::nullopt;
  }
  return Elements(all);
}

// Returns a special token; nullopt for one that the settings leave out. Other names are errors.
std::optional<std::string> FormWriter::Token(absl::string_view name) {
  if (name == "language") {
    return settings_.tokenizer.Text("src_lang").value_or(known_.Text(name));
  }
  // The first and last token that add_bos_token and add_eos_token ask for: none with
  // tokenizer.json.
  if (name == "added_bos" || name == "added_eos") {
    const absl::string_view kind = absl::StripPrefix(name, "added_");
    const auto token = SpecialTokenOf(settings_, &known_, absl::StrCat(kind, "_token"));
    const bool is_wanted = Flag(absl::StrCat("add_", kind, "_token"));
    if (!is_wanted || !settings_.sentence_piece || !token) return std::nullopt;
    return token->content;
  }
  const std::optional<JsonValue> otherwise = known_.Find("special_tokens")->Find(name);
  if (!otherwise.has_value()) {
    Keep(absl::InternalError(absl::StrCat("tokenizer_classes.json: ", known_.name,
                                          ": no value is known for \"$", name, "\"")));
    return std::nullopt;
  }
  const std::optional<AddedTokenSetting> token = settings_.SpecialToken(name);
  return token.has_value() ? token->content : std::string(otherwise->text());
}

// Returns Pegasus' mask of sentences; nullopt if the settings say null.
std::optional<std::string> FormWriter::SentenceMask(const std::string& otherwise) const {
  constexpr char kKey[] = "mask_token_sent";
  if (!settings_.tokenizer.json().Find(kKey).has_value()) return otherwise;
  return settings_.tokenizer.Text(kKey);
}

std::vector<std::string> FormWriter::OwnTokens() const {
  std::vector<std::string> own;
  for (AddedTokenSetting& token :
       settings_.AdditionalTokens().value_or(std::vector<AddedTokenSetting>())) {
    own.push_back(std::move(token.content));
  }
  return own;
}

uint32_t FormWriter::Count(absl::string_view key, uint32_t otherwise) const {
  const std::optional<JsonValue> wanted = settings_.tokenizer.Find(key);
  return std::min(wanted ? wanted->AsId().value_or(0) : otherwise, 10'000u);
}

bool FormWriter::Flag(absl::string_view key) {
  const absl::StatusOr<bool> flag = settings_.tokenizer.Bool(key, false);
  Keep(flag.status());
  return flag.ok() && *flag;
}

std::string FormWriter::Template(const std::vector<JsonValue>& texts) {
  std::map<std::string, std::string> special;
  const auto parts = [&](absl::string_view words) {
    std::string list;
    for (absl::string_view word : absl::StrSplit(words, ' ')) {
      const bool is_second = absl::ConsumeSuffix(&word, ":1");
      const bool is_text = word == "A" || word == "B";
      std::optional<std::string> name(word);
      if (absl::ConsumePrefix(&word, "$")) name = Token(word);
      if (!name.has_value()) continue;
      const std::string quoted = QuoteJson(*name);
      absl::StrAppend(&list, list.empty() ? "" : ",",
                      is_text ? R"({"Sequence")" : R"({"SpecialToken")", R"(:{"id":)", quoted,
                      R"(,"type_id":)", is_second ? 1 : 0, "}}");
      if (is_text) continue;
      special[quoted] = absl::StrCat(quoted, R"(:{"id":)", quoted, R"(,"ids":[)", Id(*name),
                                     R"(],"tokens":[)", quoted, "]}");
    }
    return list;
  };
  const std::string single = parts(texts[0].text()), pair = parts(texts[1].text());
  std::string tokens;
  for (const auto& [name, token] : special) {
    absl::StrAppend(&tokens, tokens.empty() ? "" : ",", token);
  }
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", single, R"(],"pair":[)", pair,
                      R"(],"special_tokens":{)", tokens, "}}");
}

std::string FormWriter::Id(absl::string_view token) {
  const uint32_t id = (*find_)(token);
  if (id == Tokenizer::kNoId) {
    Keep(Unexpected("tokenizer_config.json", "special tokens of the vocabulary",
                    absl::StrCat("\"", token, "\"")));
  }
  return absl::StrCat(id);
}

}  // namespace

absl::StatusOr<std::string> ClassPart(const TokenizerClass& known,
                                      const TokenizerSettings& settings, const Fields& file,
                                      absl::string_view key, const FindTokenId& find) {
  FormWriter writer(known, settings, &file, &find);
  std::string part = writer.Write(*known.Find(key));
  if (!writer.status().ok()) return writer.status();
  return part;
}

absl::StatusOr<std::vector<AddedTokenSetting>> ClassTokens(const TokenizerClass& known,
                                                           const TokenizerSettings& settings) {
  FormWriter writer(known, settings);
  std::vector<AddedTokenSetting> tokens;
  const auto add = [&](absl::string_view key) {
    for (SentencePiece& token : writer.List("tokens", key)) {
      tokens.push_back({std::move(token.text), {}});
    }
  };
  add("first");
  // After tokens of the class, equal ones are added once, with the flags of the first.
  const bool are_distinct = !tokens.empty();
  absl::flat_hash_set<std::string> seen;
  for (const AddedTokenSetting& token : tokens) seen.insert(token.content);
  std::optional<std::vector<AddedTokenSetting>> own = settings.AdditionalTokens();
  const std::optional<JsonValue> lists = known.Find("tokens");
  const bool replaces = lists.has_value() && lists->Find("instead").has_value();
  for (size_t i = 0; own.has_value() && !replaces && i < own->size(); ++i) {
    if (are_distinct && !seen.insert((*own)[i].content).second) continue;
    tokens.push_back(std::move((*own)[i]));
  }
  add("instead");
  add("last");
  if (!own.has_value()) add("otherwise");
  if (!writer.status().ok()) return writer.status();
  return tokens;
}

absl::Status ChangePieces(const TokenizerClass& known, TokenizerSettings& settings) {
  SentencePieceModel& model = *settings.sentence_piece;
  const std::optional<JsonValue> form = known.Find("pieces");
  if (!form.has_value()) return absl::OkStatus();
  if (form->Find("of").has_value() && !model.is_unigram) {
    return Unsupported(model.file, "a model of another type than Unigram is", "Unigram");
  }
  FormWriter writer(known, settings);
  std::vector<SentencePiece> pieces = writer.List("pieces", "first");
  absl::flat_hash_set<std::string> seen;
  for (const SentencePiece& piece : pieces) seen.insert(piece.text);
  const bool are_distinct = form->Find("are_distinct").has_value();
  const std::optional<JsonValue> replaced = form->Find("instead_of");
  for (size_t i = replaced ? *replaced->AsId() : 0; i < model.pieces.size(); ++i) {
    if (are_distinct && !seen.insert(model.pieces[i].text).second) continue;
    pieces.push_back(std::move(model.pieces[i]));
  }
  for (SentencePiece& piece : writer.List("pieces", "last")) pieces.push_back(std::move(piece));
  model.pieces = std::move(pieces);
  return writer.status();
}

}  // namespace attendant::text
