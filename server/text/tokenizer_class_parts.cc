#include "server/text/tokenizer_class_parts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/score.h"

namespace attendant::text {
namespace {

std::string BoolJson(bool value) { return value ? "true" : "false"; }

// The id of a token, for TokenizerOverrides::post_processor.
std::string IdOf(absl::string_view token) { return absl::StrCat("{{", token, "}}"); }

// Returns a template like "$A SEP $B", in which words other than $A and $B are special tokens.
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
                      is_text ? QuoteJson(name.substr(1)) : QuoteJson(name), R"(,"type_id":)",
                      is_second ? 1 : 0, "}}");
      const std::string quoted = QuoteJson(name);
      if (is_text || absl::StrContains(special, quoted + ":")) continue;
      absl::StrAppend(&special, special.empty() ? "" : ",", quoted, R"(:{"id":)", quoted,
                      R"(,"ids":[)", IdOf(name), R"(],"tokens":[)", quoted, "]}");
    }
    return list;
  };
  const std::string first = parts(single), second = parts(pair);
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", first, R"(],"pair":[)", second,
                      R"(],"special_tokens":{)", special, "}}");
}

absl::Status BertParts(const TokenizerSettings& settings, TokenizerOverrides& parts,
                       bool always_lowercases = false) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool wanted, fields.Bool("do_lower_case", true));
  const bool lowercase = wanted || always_lowercases;
  ASSIGN_OR_RETURN(const bool chinese, fields.Bool("tokenize_chinese_chars", true));
  ASSIGN_OR_RETURN(const bool strip, fields.Bool("strip_accents", lowercase));
  const std::string strip_json = fields.Find("strip_accents") ? BoolJson(strip) : "null";
  parts.model = absl::StrCat(
      R"({"continuing_subword_prefix":"##","max_input_chars_per_word":100,"unk_token":)",
      QuoteJson(settings.Token("unk_token", "[UNK]")), "}");
  parts.normalizer = absl::StrCat(
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":)", BoolJson(chinese),
      R"(,"strip_accents":)", strip_json, R"(,"lowercase":)", BoolJson(lowercase), "}");
  parts.pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  return absl::OkStatus();
}

// [CLS] A [SEP], and [CLS] A [SEP] B [SEP].
std::string BertEnds(const TokenizerSettings& settings) {
  const std::string cls = settings.Token("cls_token", "[CLS]"),
                    sep = settings.Token("sep_token", "[SEP]");
  return TemplateJson({cls, "$A", sep}, {cls, "$A", sep, "$B:1", sep + ":1"});
}

std::string RobertaEnds(const std::string& cls, const std::string& sep, bool trims, bool prefix) {
  return absl::StrCat(R"({"type":"RobertaProcessing","sep":[)", QuoteJson(sep), ",", IdOf(sep),
                      R"(],"cls":[)", QuoteJson(cls), ",", IdOf(cls), R"(],"trim_offsets":)",
                      BoolJson(trims), R"(,"add_prefix_space":)", BoolJson(prefix), "}");
}

std::string RobertaEnds(const TokenizerSettings& settings, bool trims, bool prefix) {
  return RobertaEnds(settings.Token("cls_token", "<s>"), settings.Token("sep_token", "</s>"), trims,
                     prefix);
}

// The options of a BPE model; `unk` is JSON.
std::string BpeOptions(absl::string_view unk, bool fuse_unk, bool byte_fallback,
                       absl::string_view suffix = "") {
  return absl::StrCat(R"({"dropout":null,"ignore_merges":false,"continuing_subword_prefix":"",)",
                      R"("unk_token":)", unk, R"(,"fuse_unk":)", BoolJson(fuse_unk),
                      R"(,"byte_fallback":)", BoolJson(byte_fallback), R"(,"end_of_word_suffix":)",
                      QuoteJson(suffix), "}");
}

std::string ByteLevelJson(bool prefix, bool use_regex) {
  return absl::StrCat(R"({"type":"ByteLevel","trim_offsets":true,"use_regex":)",
                      BoolJson(use_regex), R"(,"add_prefix_space":)", BoolJson(prefix), "}");
}

std::string MetaspaceJson(absl::string_view scheme, bool split = true) {
  return absl::StrCat(R"({"type":"Metaspace","replacement":"▁","split":)", BoolJson(split),
                      R"(,"prepend_scheme":")", scheme, "\"}");
}

// The map of characters in a file's normalizer, alone or in a sequence; or null.
std::string CharsmapJson(const Fields& file) {
  const std::optional<JsonValue> normalizer = file.Find("normalizer");
  if (!normalizer.has_value()) return "null";
  std::vector<JsonValue> steps = {*normalizer};
  if (const auto list = normalizer->Find("normalizers")) steps = list->Elements();
  for (const JsonValue& step : steps) {
    if (const auto map = step.Find("precompiled_charsmap")) {
      return absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":)",
                          QuoteJson(map->text()), "}");
    }
  }
  return "null";
}

std::string UnigramOptions(size_t unk_id) {
  return absl::StrCat(R"({"byte_fallback":false,"unk_id":)", unk_id, "}");
}

void SentencePieceParts(const Fields& file, bool prefix, TokenizerOverrides& parts) {
  parts.normalizer = CharsmapJson(file);
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)",
                   MetaspaceJson(prefix ? "always" : "never"), "]}");
}

// The place of the unknown token with a score of 0, which the class looks for.
size_t UnknownPlace(const Fields& file, const std::string& unk, size_t otherwise) {
  const std::optional<JsonValue> model = file.Find("model");
  const std::optional<JsonValue> list = model ? model->Find("vocab") : std::nullopt;
  if (!list || !list->is_array()) return otherwise;
  const std::vector<JsonValue> pieces = list->Elements();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<JsonValue> pair = pieces[i].Elements();
    if (pair.size() == 2 && pair[0].text() == unk && ParseScore(pair[1].text()) == 0) return i;
  }
  return otherwise;
}

bool ListsMoreTokens(const TokenizerSettings& settings) {
  const JsonValue given = settings.tokenizer.fields().json();
  return given.Find("additional_special_tokens") || given.Find("extra_special_tokens");
}

constexpr char kQwenPattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|)"
    R"(\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";

}  // namespace

absl::Status LikeBert(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts) {
  parts.post_processor = BertEnds(settings);
  return BertParts(settings, parts);
}

absl::Status LikeDpr(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts) {
  parts.post_processor = BertEnds(settings);
  return BertParts(settings, parts, /*always_lowercases=*/true);
}

absl::Status LikeMpnet(const TokenizerSettings& settings, const Fields&,
                       TokenizerOverrides& parts) {
  parts.post_processor = RobertaEnds(settings, true, false);
  return BertParts(settings, parts);
}

absl::Status LikeRoberta(const TokenizerSettings& settings, const Fields&,
                         TokenizerOverrides& parts) {
  ASSIGN_OR_RETURN(const bool prefix, settings.tokenizer.fields().Bool("add_prefix_space", false));
  ASSIGN_OR_RETURN(const bool trims, settings.tokenizer.fields().Bool("trim_offsets", true));
  parts.model = BpeOptions("null", false, false);
  parts.normalizer = "null";
  parts.pre_tokenizer = ByteLevelJson(prefix, true);
  parts.post_processor = RobertaEnds(settings, trims, prefix);
  return absl::OkStatus();
}

absl::Status LikeGpt2(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts) {
  ASSIGN_OR_RETURN(const bool prefix, settings.tokenizer.fields().Bool("add_prefix_space", false));
  parts.model = BpeOptions("null", false, false);
  parts.normalizer = "null";
  parts.pre_tokenizer = ByteLevelJson(prefix, true);
  return absl::OkStatus();
}

absl::Status LikeXlmRoberta(const TokenizerSettings& settings, const Fields& file,
                            TokenizerOverrides& parts) {
  ASSIGN_OR_RETURN(const bool prefix, settings.tokenizer.fields().Bool("add_prefix_space", true));
  const std::string bos = settings.Token("bos_token", "<s>"),
                    eos = settings.Token("eos_token", "</s>");
  parts.model = UnigramOptions(3);
  parts.post_processor = TemplateJson({bos, "$A", eos}, {bos, "$A", eos, eos, "$B", eos});
  SentencePieceParts(file, prefix, parts);
  return absl::OkStatus();
}

absl::Status LikeCamembert(const TokenizerSettings& settings, const Fields& file,
                           TokenizerOverrides& parts) {
  RETURN_IF_ERROR(LikeXlmRoberta(settings, file, parts));
  parts.model = UnigramOptions(UnknownPlace(file, settings.Token("unk_token", "<unk>"), 0));
  return absl::OkStatus();
}

absl::Status LikeAlbert(const TokenizerSettings& settings, const Fields& file,
                        TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool lowercase, fields.Bool("do_lower_case", true));
  ASSIGN_OR_RETURN(const bool accents, fields.Bool("keep_accents", false));
  SentencePieceParts(file, prefix, parts);
  parts.model = UnigramOptions(1);
  const std::string charsmap = *parts.normalizer;
  parts.normalizer = absl::StrCat(R"({"type":"Sequence","normalizers":[)",
                                  R"({"type":"Replace","pattern":{"String":"``"},"content":"\""},)",
                                  R"({"type":"Replace","pattern":{"String":"''"},"content":"\""})",
                                  accents ? "" : R"(,{"type":"NFKD"},{"type":"StripAccents"})",
                                  lowercase ? R"(,{"type":"Lowercase"})" : "",
                                  charsmap == "null" ? "" : "," + charsmap, "]}");
  return absl::OkStatus();
}

absl::Status LikeBigBird(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  ASSIGN_OR_RETURN(const bool prefix, settings.tokenizer.fields().Bool("add_prefix_space", true));
  parts.model = UnigramOptions(UnknownPlace(file, settings.Token("unk_token", "<unk>"), 100));
  parts.normalizer =
      R"({"type":"Sequence","normalizers":[{"type":"Strip","strip_left":false,"strip_right":false},)"
      R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]})";
  parts.pre_tokenizer = MetaspaceJson(prefix ? "always" : "never");
  parts.post_processor = BertEnds(settings);
  return absl::OkStatus();
}

absl::Status LikeT5(const TokenizerSettings&, const Fields& file, TokenizerOverrides& parts) {
  parts.model = UnigramOptions(2);
  parts.post_processor = TemplateJson({"$A", "</s>"}, {"$A", "</s>", "$B", "</s>"});
  SentencePieceParts(file, true, parts);
  return absl::OkStatus();
}

absl::Status LikeDeberta(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool lowercase, fields.Bool("do_lower_case", false));
  ASSIGN_OR_RETURN(const bool punctuation, fields.Bool("split_by_punct", false));
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  parts.model = UnigramOptions(UnknownPlace(file, settings.Token("unk_token", "[UNK]"), 1));
  parts.normalizer = absl::StrCat(
      R"({"type":"Sequence","normalizers":[)", lowercase ? R"({"type":"Lowercase"},)" : "",
      R"({"type":"Replace","pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},"content":" "},{"type":"NFC"},)",
      R"({"type":"Strip","strip_left":false,"strip_right":true}]})");
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[)",
                   punctuation ? R"({"type":"Punctuation","behavior":"Isolated"},)" : "",
                   MetaspaceJson(prefix ? "always" : "first"), "]}");
  parts.post_processor = BertEnds(settings);
  return absl::OkStatus();
}

absl::Status LikeLlama(const TokenizerSettings& settings, const Fields&,
                       TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool legacy, fields.Bool("legacy", false));
  parts.model = BpeOptions("null", true, true);
  parts.normalizer = "null";
  parts.pre_tokenizer = MetaspaceJson(!prefix ? "never" : legacy ? "always" : "first", false);
  return absl::OkStatus();
}

absl::Status LikeGemma(const TokenizerSettings& settings, const Fields&,
                       TokenizerOverrides& parts) {
  parts.model = BpeOptions(QuoteJson(settings.Token("unk_token", "<unk>")), true, true);
  parts.normalizer = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  parts.pre_tokenizer =
      R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  return absl::OkStatus();
}

absl::Status LikeQwen(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts) {
  ASSIGN_OR_RETURN(const bool prefix, settings.tokenizer.fields().Bool("add_prefix_space", false));
  parts.model = BpeOptions("null", false, false);
  parts.normalizer = R"({"type":"NFC"})";
  parts.pre_tokenizer = absl::StrCat(
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")", kQwenPattern,
      R"("},"behavior":"Isolated","invert":false},)", ByteLevelJson(prefix, false), "]}");
  return absl::OkStatus();
}

absl::Status LikeClip(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts) {
  parts.model =
      BpeOptions(QuoteJson(settings.Token("unk_token", "<|endoftext|>")), false, false, "</w>");
  parts.normalizer =
      R"({"type":"Sequence","normalizers":[{"type":"NFC"},)"
      R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]})";
  parts.pre_tokenizer = absl::StrCat(
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")",
      R"(<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|)",
      R"([^\\s\\p{L}\\p{N}]+"},"behavior":"Removed","invert":true},)", ByteLevelJson(false, true),
      "]}");
  parts.post_processor = RobertaEnds(settings.Token("bos_token", "<|startoftext|>"),
                                     settings.Token("eos_token", "<|endoftext|>"), false, false);
  return absl::OkStatus();
}

void AddNotUsed(const TokenizerSettings& settings, TokenizerOverrides& parts) {
  if (ListsMoreTokens(settings)) return;
  for (const char* token : {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}) {
    parts.special_tokens.push_back({token, {}});
  }
}

void AddSentinels(const TokenizerSettings& settings, TokenizerOverrides& parts) {
  if (ListsMoreTokens(settings)) return;
  const std::optional<JsonValue> wanted = settings.tokenizer.Find("extra_ids");
  const uint32_t count = wanted ? wanted->AsId().value_or(0) : 100;
  for (uint32_t i = 0; i < std::min(count, 10'000u); ++i) {
    parts.special_tokens.push_back({absl::StrCat("<extra_id_", i, ">"), {}});
  }
}

}  // namespace attendant::text
