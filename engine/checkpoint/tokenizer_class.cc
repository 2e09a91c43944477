#include "engine/checkpoint/tokenizer_class.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/tokenizer_json.h"

namespace attendant {
namespace {

// The parts of a tokenizer.json that a class replaces.
struct Parts {
  Json normalizer;
  Json pre_tokenizer;
  Json post_processor;  // null: that of the file stays
};

// What tokenizer_config.json and tokenizer.json say, without the vocabulary.
class TokenizerFiles {
 public:
  TokenizerFiles(const Json& config, const Json& file) : config_(config), file_(file) {}

  bool Flag(const char* name, bool fallback) const {
    const auto found = config_.find(name);
    return found == config_.end() || !found->is_boolean() ? fallback : found->get<bool>();
  }
  // Null if the flag is absent.
  Json FlagOrNull(const char* name) const {
    const auto found = config_.find(name);
    return found == config_.end() || !found->is_boolean() ? Json() : *found;
  }
  // Returns [text, id] of the special token of a role, or null if it is no added token.
  Json Token(const char* role, const char* fallback) const {
    Json text = config_.value(role, Json());
    if (text.is_object()) text = text.value("content", Json());
    if (!text.is_string()) text = fallback;
    for (const Json& token : file_.value("added_tokens", Json::array())) {
      if (!token.is_object() || token.value("content", Json()) != text) continue;
      return Json::array({text, token.value("id", Json())});
    }
    return nullptr;
  }
  // Returns the Precompiled normalizer that the file has, or null.
  Json Charsmap() const {
    const Json normalizer = file_.value("normalizer", Json());
    const Json parts = normalizer.is_object() && normalizer.contains("normalizers")
                           ? normalizer["normalizers"]
                           : Json::array({normalizer});
    for (const Json& part : parts) {
      if (!part.is_object() || part.value("type", Json()) != "Precompiled") continue;
      return {{"type", "Precompiled"},
              {"precompiled_charsmap", part.value("precompiled_charsmap", Json())}};
    }
    return nullptr;
  }

 private:
  const Json& config_;
  const Json& file_;
};

Json Typed(const char* type) { return {{"type", type}}; }

Json SequenceOf(Json normalizers) {
  return {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
}

Json PreSequenceOf(Json pre_tokenizers) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(pre_tokenizers)}};
}

Json Replace(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

Json Metaspace(const char* prepend_scheme) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", prepend_scheme},
          {"split", true}};
}

const char* PrependScheme(const TokenizerFiles& files, const char* without) {
  return files.Flag("add_prefix_space", true) ? "always" : without;
}

Json SplitAtSpaces(const char* prepend_scheme) {
  return PreSequenceOf({Typed("WhitespaceSplit"), Metaspace(prepend_scheme)});
}

// The special tokens around texts, each [text, id]. Null if one of them has no id.
struct Ends {
  Json first;  // or empty: there is none
  Json last;
  bool doubled = false;  // the last one also stands before the second text of two
  int second_type = 1;   // of the tokens of the second text

  Json Template() const {
    if (first.is_null() || last.is_null()) return nullptr;
    const auto token = [](const Json& of, int type) {
      return Json{{"SpecialToken", {{"id", of[0]}, {"type_id", type}}}};
    };
    const auto text = [](const char* name, int type) {
      return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
    };
    Json single = Json::array();
    if (!first.empty()) single.push_back(token(first, 0));
    single.push_back(text("A", 0));
    single.push_back(token(last, 0));
    Json pair = single;
    if (doubled) pair.push_back(token(last, 0));
    pair.push_back(text("B", second_type));
    pair.push_back(token(last, second_type));
    Json tokens = Json::object();
    for (const Json& of : {first, last}) {
      if (of.empty()) continue;
      tokens[of[0].get<std::string>()] = {
          {"id", of[0]}, {"ids", Json::array({of[1]})}, {"tokens", Json::array({of[0]})}};
    }
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(tokens)}};
  }
};

Json RobertaEnds(const TokenizerFiles& files, bool trim_offsets, bool add_prefix_space) {
  const Json first = files.Token("cls_token", "<s>"), last = files.Token("sep_token", "</s>");
  if (first.is_null() || last.is_null()) return nullptr;
  return {{"type", "RobertaProcessing"},
          {"sep", last},
          {"cls", first},
          {"trim_offsets", trim_offsets},
          {"add_prefix_space", add_prefix_space}};
}

Json BertEnds(const TokenizerFiles& files) {
  return Ends{files.Token("cls_token", "[CLS]"), files.Token("sep_token", "[SEP]")}.Template();
}

Parts Bert(const TokenizerFiles& files) {
  return {{{"type", "BertNormalizer"},
           {"clean_text", true},
           {"handle_chinese_chars", files.Flag("tokenize_chinese_chars", true)},
           {"strip_accents", files.FlagOrNull("strip_accents")},
           {"lowercase", files.Flag("do_lower_case", true)}},
          Typed("BertPreTokenizer"),
          BertEnds(files)};
}

Parts MpNet(const TokenizerFiles& files) {
  Parts parts = Bert(files);
  parts.post_processor = RobertaEnds(files, true, false);
  return parts;
}

Parts Roberta(const TokenizerFiles& files) {
  const bool prefix = files.Flag("add_prefix_space", false);
  return {nullptr,
          {{"type", "ByteLevel"},
           {"add_prefix_space", prefix},
           {"trim_offsets", true},
           {"use_regex", true}},
          RobertaEnds(files, files.Flag("trim_offsets", true), prefix)};
}

Parts XlmRoberta(const TokenizerFiles& files) {
  const Ends ends = {.first = files.Token("bos_token", "<s>"),
                     .last = files.Token("eos_token", "</s>"),
                     .doubled = true,
                     .second_type = 0};
  return {files.Charsmap(), SplitAtSpaces(PrependScheme(files, "never")), ends.Template()};
}

Parts T5(const TokenizerFiles& files) {
  const Ends ends = {
      .first = Json::array(), .last = files.Token("eos_token", "</s>"), .second_type = 0};
  return {files.Charsmap(), SplitAtSpaces("always"), ends.Template()};
}

Parts Albert(const TokenizerFiles& files) {
  Json normalizers = {Replace("String", "``", "\""), Replace("String", "''", "\"")};
  if (!files.Flag("keep_accents", false)) {
    normalizers.push_back(Typed("NFKD"));
    normalizers.push_back(Typed("StripAccents"));
  }
  if (files.Flag("do_lower_case", true)) normalizers.push_back(Typed("Lowercase"));
  if (const Json charsmap = files.Charsmap(); !charsmap.is_null()) normalizers.push_back(charsmap);
  return {SequenceOf(std::move(normalizers)), SplitAtSpaces(PrependScheme(files, "never")),
          nullptr};
}

Parts DebertaV2(const TokenizerFiles& files) {
  Json normalizers = Json::array();
  if (files.Flag("do_lower_case", false)) normalizers.push_back(Typed("Lowercase"));
  normalizers.push_back(Replace("Regex", "\\s{2,}|[\\n\\r\\t]", " "));
  normalizers.push_back(Typed("NFC"));
  normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  Json pre_tokenizers = Json::array();
  if (files.Flag("split_by_punct", false)) {
    pre_tokenizers.push_back({{"type", "Punctuation"}, {"behavior", "Isolated"}});
  }
  pre_tokenizers.push_back(Metaspace(PrependScheme(files, "first")));
  return {SequenceOf(std::move(normalizers)), PreSequenceOf(std::move(pre_tokenizers)),
          BertEnds(files)};
}

Parts BigBird(const TokenizerFiles& files) {
  return {SequenceOf({{{"type", "Strip"}, {"strip_left", false}, {"strip_right", false}},
                      Replace("Regex", " {2,}", "\u2581")}),
          Metaspace(PrependScheme(files, "never")), BertEnds(files)};
}

struct TokenizerClass {
  const char* name;   // without "Tokenizer" or "TokenizerFast"
  const char* model;  // the type of vocabulary that the class takes
  Parts (*parts)(const TokenizerFiles& files);
};

constexpr TokenizerClass kClasses[] = {
    {"Bert", "WordPiece", Bert},          {"DistilBert", "WordPiece", Bert},
    {"Electra", "WordPiece", Bert},       {"MobileBert", "WordPiece", Bert},
    {"LayoutLM", "WordPiece", Bert},      {"SqueezeBert", "WordPiece", Bert},
    {"Lxmert", "WordPiece", Bert},        {"MPNet", "WordPiece", MpNet},
    {"Roberta", "BPE", Roberta},          {"Bart", "BPE", Roberta},
    {"Longformer", "BPE", Roberta},       {"XLMRoberta", "Unigram", XlmRoberta},
    {"Camembert", "Unigram", XlmRoberta}, {"T5", "Unigram", T5},
    {"Albert", "Unigram", Albert},        {"DebertaV2", "Unigram", DebertaV2},
    {"BigBird", "Unigram", BigBird},
};

constexpr std::pair<absl::string_view, const char*> kClassOfFamily[] = {
    {"bert", "Bert"},
    {"ernie", "Bert"},
    {"roberta", "Roberta"},
    {"data2vec-text", "Roberta"},
    {"bart", "Roberta"},
    {"xlm-roberta", "XLMRoberta"},
    {"camembert", "Camembert"},
    {"distilbert", "Bert"},
    {"electra", "Bert"},
    {"albert", "Albert"},
    {"mobilebert", "MobileBert"},
    {"big_bird", "BigBird"},
    {"mpnet", "MPNet"},
    {"deberta-v2", "DebertaV2"},
    {"t5", "T5"},
    {"mt5", "T5"},
    {"nomic_bert", "Bert"},
    {"gte", "XLMRoberta"},
};

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns nullptr if the class of the tokenizer takes the file as it is.
const TokenizerClass* FindClass(const Json& tokenizer_config, const Json& config) {
  const std::string family = TextOf(config, "model_type");
  if (family == "modernbert") return nullptr;  // whatever class its files name
  std::string name = TextOf(tokenizer_config, "tokenizer_class");
  if (name.empty()) name = TextOf(config, "tokenizer_class");
  absl::string_view stem = absl::StripSuffix(absl::StripSuffix(name, "Fast"), "Tokenizer");
  for (const auto& [known, of_family] : kClassOfFamily) {
    if (name.empty() && family == known) stem = of_family;
  }
  for (const TokenizerClass& known : kClasses) {
    if (stem == known.name) return &known;
  }
  return nullptr;
}

// Parses a tokenizer without its vocabulary. Returns null for what is none.
Json ParseWithoutVocabulary(const std::string& json) {
  const Json::parser_callback_t wanted = [](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    return depth != 2 || (parsed != "vocab" && parsed != "merges");
  };
  Json parsed = Json::parse(json, wanted, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("model") || !parsed["model"].is_object()) return {};
  return parsed;
}

// Whether `found` says what `wanted` does, perhaps with keys of older versions beside.
bool SaysTheSame(const Json& wanted, const Json& found) {
  if (wanted.is_number() && found.is_number()) return wanted == found;
  if (wanted.type() != found.type()) return false;
  if (wanted.is_array()) {
    return std::equal(wanted.begin(), wanted.end(), found.begin(), found.end(), SaysTheSame);
  }
  if (!wanted.is_object()) return wanted == found;
  for (const auto& [key, value] : wanted.items()) {
    if (!found.contains(key) || !SaysTheSame(value, found[key])) return false;
  }
  return true;
}

}  // namespace

void ApplyTokenizerClass(const Json& tokenizer_config, const Json& config,
                         std::string& tokenizer_json, std::vector<std::string>& warnings) {
  const TokenizerClass* tokenizer_class = FindClass(tokenizer_config, config);
  if (tokenizer_class == nullptr) return;
  const Json file = ParseWithoutVocabulary(tokenizer_json);
  if (file.is_null() || TextOf(file["model"], "type") != tokenizer_class->model) return;
  Parts parts = tokenizer_class->parts(TokenizerFiles(tokenizer_config, file));
  std::map<std::string, Json> wanted = {{"normalizer", std::move(parts.normalizer)},
                                        {"pre_tokenizer", std::move(parts.pre_tokenizer)}};
  if (!parts.post_processor.is_null()) wanted["post_processor"] = std::move(parts.post_processor);
  std::erase_if(wanted, [&](const auto& part) {
    return SaysTheSame(part.second, file.value(part.first, Json()));
  });
  if (wanted.empty()) return;
  std::vector<std::string> replaced;
  for (const auto& [key, value] : wanted) {
    SetMember(key, value, tokenizer_json);
    replaced.push_back(key);
  }
  warnings.push_back(absl::StrCat("tokenizer.json: replaced its ", absl::StrJoin(replaced, " and "),
                                  ", as transformers does for ", tokenizer_class->name,
                                  "Tokenizer with the flags of tokenizer_config.json"));
}

}  // namespace attendant
