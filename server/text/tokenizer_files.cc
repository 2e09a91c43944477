#include "server/text/tokenizer_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {
namespace {

// A file of settings; without it, no key is there.
class Settings {
 public:
  static absl::StatusOr<Settings> Read(const std::optional<std::string>& json,
                                       absl::string_view file) {
    auto tree = JsonTree::Parse(json.has_value() ? absl::string_view(*json) : "{}", file);
    if (!tree.ok()) return tree.status();
    if (!(*tree)->root().is_object()) return Unexpected(file, "an object", (*tree)->root());
    return Settings(*std::move(tree), std::string(file));
  }

  Fields fields() const { return Fields(tree_->root(), file_); }
  std::optional<JsonValue> Find(absl::string_view key) const { return fields().Find(key); }

  // A text, or the content of a token that is an object.
  std::optional<std::string> Text(absl::string_view key) const {
    std::optional<JsonValue> value = Find(key);
    if (value.has_value() && value->is_object()) value = value->Find("content");
    if (!value.has_value() || !value->is_string()) return std::nullopt;
    return std::string(value->text());
  }

  // A length; those that stand for "none", such as 1e30, are none.
  size_t Length(absl::string_view key) const {
    const std::optional<JsonValue> value = Find(key);
    return value.has_value() ? value->AsId().value_or(0) : 0;
  }

 private:
  Settings(std::unique_ptr<JsonTree> tree, std::string file)
      : tree_(std::move(tree)), file_(std::move(file)) {}

  std::unique_ptr<JsonTree> tree_;
  std::string file_;
};

struct AllSettings {
  Settings tokenizer, special, model, sentence;

  std::string Token(absl::string_view key, absl::string_view otherwise) const {
    if (const auto text = tokenizer.Text(key)) return *text;
    return special.Text(key).value_or(std::string(otherwise));
  }
};

std::string BoolJson(bool value) { return value ? "true" : "false"; }

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

// The id of a token, for TokenizerOverrides::post_processor.
std::string IdOf(absl::string_view token) { return absl::StrCat("{{", token, "}}"); }

// A template like "$A SEP $B", whose words but $A and $B are special tokens.
std::string TemplateJson(const std::vector<std::string>& single,
                         const std::vector<std::string>& pair) {
  std::string special;
  const auto parts = [&](const std::vector<std::string>& words) {
    std::string list;
    for (const std::string& word : words) {
      const bool is_second = absl::EndsWith(word, ":1");
      const std::string name = is_second ? word.substr(0, word.size() - 2) : word;
      const bool is_text = name == "$A" || name == "$B";
      absl::StrAppend(&list, list.empty() ? "" : ",",
                      is_text ? R"({"Sequence":{"id":)" : R"({"SpecialToken":{"id":)",
                      is_text ? Quoted(name.substr(1)) : Quoted(name), R"(,"type_id":)",
                      is_second ? 1 : 0, "}}");
      if (!is_text) {
        absl::StrAppend(&special, special.empty() ? "" : ",", Quoted(name), R"(:{"ids":[)",
                        IdOf(name), "]}");
      }
    }
    return list;
  };
  const std::string first = parts(single), second = parts(pair);
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", first, R"(],"pair":[)", second,
                      R"(],"special_tokens":{)", special, "}}");
}

absl::StatusOr<BertSettings> ReadBertSettings(const AllSettings& settings) {
  const Fields fields = settings.tokenizer.fields();
  absl::StatusOr<bool> lowercase = fields.Bool("do_lower_case", true);
  if (!lowercase.ok()) return lowercase.status();
  absl::StatusOr<bool> chinese = fields.Bool("tokenize_chinese_chars", true);
  if (!chinese.ok()) return chinese.status();
  absl::StatusOr<bool> strip = fields.Bool("strip_accents", *lowercase);
  if (!strip.ok()) return strip.status();
  return BertSettings{*lowercase, *chinese, *strip};
}

absl::Status BertParts(const AllSettings& settings, TokenizerOverrides& parts) {
  absl::StatusOr<BertSettings> bert = ReadBertSettings(settings);
  if (!bert.ok()) return bert.status();
  parts.normalizer = absl::StrCat(
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":)",
      BoolJson(bert->tokenize_chinese_chars), R"(,"strip_accents":)",
      BoolJson(*bert->strip_accents), R"(,"lowercase":)", BoolJson(bert->lowercase), "}");
  parts.pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  return absl::OkStatus();
}

absl::Status LikeBert(const AllSettings& settings, const Fields&, TokenizerOverrides& parts) {
  const std::string cls = settings.Token("cls_token", "[CLS]"),
                    sep = settings.Token("sep_token", "[SEP]");
  parts.post_processor = TemplateJson({cls, "$A", sep}, {cls, "$A", sep, "$B:1", sep + ":1"});
  return BertParts(settings, parts);
}

std::string RobertaEnds(const AllSettings& settings, bool trims, bool prefix) {
  const std::string cls = settings.Token("cls_token", "<s>"),
                    sep = settings.Token("sep_token", "</s>");
  return absl::StrCat(R"({"type":"RobertaProcessing","sep":[)", Quoted(sep), ",", IdOf(sep),
                      R"(],"cls":[)", Quoted(cls), ",", IdOf(cls), R"(],"trim_offsets":)",
                      BoolJson(trims), R"(,"add_prefix_space":)", BoolJson(prefix), "}");
}

absl::Status LikeMpnet(const AllSettings& settings, const Fields&, TokenizerOverrides& parts) {
  parts.post_processor = RobertaEnds(settings, true, false);
  return BertParts(settings, parts);
}

absl::Status LikeRoberta(const AllSettings& settings, const Fields&, TokenizerOverrides& parts) {
  absl::StatusOr<bool> prefix = settings.tokenizer.fields().Bool("add_prefix_space", false);
  if (!prefix.ok()) return prefix.status();
  absl::StatusOr<bool> trims = settings.tokenizer.fields().Bool("trim_offsets", true);
  if (!trims.ok()) return trims.status();
  parts.normalizer = "null";
  parts.pre_tokenizer = absl::StrCat(
      R"({"type":"ByteLevel","trim_offsets":true,"use_regex":true,"add_prefix_space":)",
      BoolJson(*prefix), "}");
  parts.post_processor = RobertaEnds(settings, *trims, *prefix);
  return absl::OkStatus();
}

std::string MetaspaceJson(bool always, absl::string_view otherwise) {
  return absl::StrCat(R"({"type":"Metaspace","replacement":"▁","split":true,"prepend_scheme":")",
                      always ? "always" : otherwise, "\"}");
}

// The map of characters in a file's normalizer, alone or in a sequence; or null.
std::string CharsmapJson(const Fields& file) {
  const std::optional<JsonValue> normalizer = file.Find("normalizer");
  if (!normalizer.has_value()) return "null";
  std::vector<JsonValue> steps = {*normalizer};
  if (const auto list = normalizer->Find("normalizers")) steps = list->Elements();
  for (const JsonValue& step : steps) {
    if (const auto map = step.Find("precompiled_charsmap")) {
      return absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":)", Quoted(map->text()),
                          "}");
    }
  }
  return "null";
}

absl::Status SentencePieceParts(const AllSettings& settings, const Fields& file,
                                TokenizerOverrides& parts) {
  absl::StatusOr<bool> prefix = settings.tokenizer.fields().Bool("add_prefix_space", true);
  if (!prefix.ok()) return prefix.status();
  parts.normalizer = CharsmapJson(file);
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)",
                   MetaspaceJson(*prefix, "never"), "]}");
  return absl::OkStatus();
}

absl::Status LikeXlmRoberta(const AllSettings& settings, const Fields& file,
                            TokenizerOverrides& parts) {
  const std::string bos = settings.Token("bos_token", "<s>"),
                    eos = settings.Token("eos_token", "</s>");
  parts.post_processor = TemplateJson({bos, "$A", eos}, {bos, "$A", eos, eos, "$B", eos});
  return SentencePieceParts(settings, file, parts);
}

absl::Status LikeT5(const AllSettings& settings, const Fields& file, TokenizerOverrides& parts) {
  parts.post_processor = TemplateJson({"$A", "</s>"}, {"$A", "</s>", "$B", "</s>"});
  absl::Status status = SentencePieceParts(settings, file, parts);
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)",
                   MetaspaceJson(true, ""), "]}");
  return status;
}

absl::Status LikeDeberta(const AllSettings& settings, const Fields&, TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  absl::StatusOr<bool> lowercase = fields.Bool("do_lower_case", false);
  if (!lowercase.ok()) return lowercase.status();
  absl::StatusOr<bool> punctuation = fields.Bool("split_by_punct", false);
  if (!punctuation.ok()) return punctuation.status();
  absl::StatusOr<bool> prefix = fields.Bool("add_prefix_space", true);
  if (!prefix.ok()) return prefix.status();
  parts.normalizer = absl::StrCat(
      R"({"type":"Sequence","normalizers":[)", *lowercase ? R"({"type":"Lowercase"},)" : "",
      R"({"type":"Replace","pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},"content":" "},{"type":"NFC"},)",
      R"({"type":"Strip","strip_left":false,"strip_right":true}]})");
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[)",
                   *punctuation ? R"({"type":"Punctuation","behavior":"Isolated"},)" : "",
                   MetaspaceJson(*prefix, "first"), "]}");
  const std::string cls = settings.Token("cls_token", "[CLS]"),
                    sep = settings.Token("sep_token", "[SEP]");
  parts.post_processor = TemplateJson({cls, "$A", sep}, {cls, "$A", sep, "$B:1", sep + ":1"});
  return absl::OkStatus();
}

// A class of transformers that builds all but the vocabulary by itself.
struct RebuildingClass {
  absl::string_view name, model_type, model;
  absl::Status (*parts)(const AllSettings&, const Fields& file, TokenizerOverrides&);
};

constexpr RebuildingClass kClasses[] = {
    {"BertTokenizer", "bert", "WordPiece", LikeBert},
    {"DistilBertTokenizer", "distilbert", "WordPiece", LikeBert},
    {"MPNetTokenizer", "mpnet", "WordPiece", LikeMpnet},
    {"RobertaTokenizer", "roberta", "BPE", LikeRoberta},
    {"XLMRobertaTokenizer", "xlm-roberta", "Unigram", LikeXlmRoberta},
    {"T5Tokenizer", "t5", "Unigram", LikeT5},
    {"DebertaV2Tokenizer", "deberta-v2", "Unigram", LikeDeberta},
};

const RebuildingClass* FindClass(const AllSettings& settings) {
  std::optional<std::string> name = settings.tokenizer.Text("tokenizer_class");
  if (!name.has_value()) name = settings.model.Text("tokenizer_class");
  const std::string model_type = settings.model.Text("model_type").value_or("");
  for (const RebuildingClass& known : kClasses) {
    const bool matches = name.has_value() ? absl::StripSuffix(*name, "Fast") == known.name
                                          : model_type == known.model_type;
    if (matches) return &known;
  }
  return nullptr;
}

size_t MaxLength(const AllSettings& settings) {
  if (const size_t own = settings.sentence.Length("max_seq_length"); own > 0) return own;
  size_t length = settings.tokenizer.Length("model_max_length");
  if (length == 0) length = settings.tokenizer.Length("max_len");
  const size_t positions = settings.model.Length("max_position_embeddings");
  return length == 0 || positions == 0 ? std::max(length, positions) : std::min(length, positions);
}

absl::StatusOr<AllSettings> ReadSettings(const TokenizerFiles& files) {
  auto tokenizer = Settings::Read(files.tokenizer_config_json, "tokenizer_config.json");
  if (!tokenizer.ok()) return tokenizer.status();
  auto special = Settings::Read(files.special_tokens_map_json, "special_tokens_map.json");
  if (!special.ok()) return special.status();
  auto model = Settings::Read(files.config_json, "config.json");
  if (!model.ok()) return model.status();
  auto sentence = Settings::Read(files.sentence_bert_config_json, "sentence_bert_config.json");
  if (!sentence.ok()) return sentence.status();
  return AllSettings{*std::move(tokenizer), *std::move(special), *std::move(model),
                     *std::move(sentence)};
}

// Flags of added tokens, which win over those of tokenizer.json.
absl::Status ReadAddedFlags(const Settings& settings, TokenizerOverrides& overrides) {
  const std::optional<JsonValue> decoder = settings.Find("added_tokens_decoder");
  if (!decoder.has_value()) return absl::OkStatus();
  for (const JsonValue& token : decoder->Elements()) {
    absl::StatusOr<Fields> fields =
        Fields::Open(token, "tokenizer_config.json.added_tokens_decoder");
    if (!fields.ok()) return fields.status();
    absl::StatusOr<std::string> content = fields->String("content");
    if (!content.ok()) return content.status();
    AddedTokenFlags& flags = overrides.added_flags[*content];
    const std::pair<absl::string_view, bool*> all[] = {{"single_word", &flags.single_word},
                                                       {"lstrip", &flags.lstrip},
                                                       {"rstrip", &flags.rstrip},
                                                       {"normalized", &flags.normalized}};
    for (const auto& [key, flag] : all) {
      absl::StatusOr<bool> read = fields->Bool(key, false);
      if (!read.ok()) return read.status();
      *flag = *read;
    }
  }
  return absl::OkStatus();
}

absl::Status LoadFile(const std::string& json, const AllSettings& settings,
                      EffectiveTokenizer& effective) {
  absl::StatusOr<Settings> file = Settings::Read(json, "tokenizer.json");
  if (!file.ok()) return file.status();
  TokenizerOverrides overrides;
  if (absl::Status status = ReadAddedFlags(settings.tokenizer, overrides); !status.ok())
    return status;
  const RebuildingClass* rebuilds = FindClass(settings);
  const std::optional<JsonValue> model = file->Find("model");
  const std::optional<JsonValue> type = model.has_value() ? model->Find("type") : std::nullopt;
  if (rebuilds != nullptr && type.has_value() && type->text() == rebuilds->model) {
    const absl::Status status = rebuilds->parts(settings, file->fields(), overrides);
    if (!status.ok()) return status;
    overrides.reason = absl::StrCat("transformers' ", rebuilds->name);
  }
  absl::StatusOr<bool> lowercase = settings.sentence.fields().Bool("do_lower_case", false);
  if (!lowercase.ok()) return lowercase.status();
  overrides.lowercase = *lowercase;
  auto tokenizer = Tokenizer::Load(json, overrides, &effective.notes);
  if (!tokenizer.ok()) return tokenizer.status();
  effective.tokenizer = *std::move(tokenizer);
  return absl::OkStatus();
}

absl::Status LoadLines(const std::string& lines, const AllSettings& settings,
                       EffectiveTokenizer& effective) {
  absl::StatusOr<BertSettings> bert = ReadBertSettings(settings);
  if (!bert.ok()) return bert.status();
  auto tokenizer = Tokenizer::LoadVocabulary(lines, *bert);
  if (!tokenizer.ok()) return tokenizer.status();
  effective.tokenizer = *std::move(tokenizer);
  effective.notes.push_back("vocab.txt without tokenizer.json is used as BERT's");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files) {
  absl::StatusOr<AllSettings> settings = ReadSettings(files);
  if (!settings.ok()) return settings.status();
  EffectiveTokenizer effective;
  absl::Status status =
      absl::NotFoundError("tokenizer.json: not found; add it, or vocab.txt, to the checkpoint");
  if (files.tokenizer_json.has_value()) {
    status = LoadFile(*files.tokenizer_json, *settings, effective);
  } else if (files.vocab_txt.has_value()) {
    status = LoadLines(*files.vocab_txt, *settings, effective);
  }
  if (!status.ok()) return status;
  effective.max_length = MaxLength(*settings);
  effective.truncation_side = effective.tokenizer->truncation_side();
  if (const auto side = settings->tokenizer.Text("truncation_side")) {
    effective.truncation_side = *side == "left" ? TruncationSide::kLeft : TruncationSide::kRight;
  }
  return effective;
}

}  // namespace attendant::text
