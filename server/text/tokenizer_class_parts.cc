#include "server/text/tokenizer_class_parts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"
#include "server/text/base/part_json.h"
#include "server/text/models/score.h"

namespace attendant::text {
namespace {

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

std::string RobertaEnds(const TokenizerSettings& settings, bool trims, bool prefix) {
  return RobertaJson(settings.Token("cls_token", "<s>"), settings.Token("sep_token", "</s>"), trims,
                     prefix);
}

void SentencePieceParts(const Fields& file, bool prefix, TokenizerOverrides& parts) {
  parts.normalizer = CharsmapJson(file);
  parts.pre_tokenizer =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)",
                   MetaspaceJson(prefix ? "always" : "never"), "]}");
}

// The place of the unknown token with a score of 0, which the class looks for.
int64_t UnknownPlace(const Fields& file, const std::string& unk, int64_t otherwise) {
  const std::optional<JsonValue> model = file.Find("model");
  const std::optional<JsonValue> list = model ? model->Find("vocab") : std::nullopt;
  if (!list || !list->is_array()) return otherwise;
  const std::vector<JsonValue> pieces = list->Elements();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<JsonValue> pair = pieces[i].Elements();
    if (pair.size() == 2 && pair[0].text() == unk && ParseScore(pair[1].text()) == 0) {
      return static_cast<int64_t>(i);
    }
  }
  return otherwise;
}

// The first and last token that add_bos_token and add_eos_token ask for: none with tokenizer.json.
absl::StatusOr<std::string> BosEosEnds(const TokenizerSettings& settings, const std::string& bos,
                                       const std::string& eos) {
  const auto token = [&](absl::string_view key, absl::string_view flag,
                         const std::string& otherwise) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const bool wanted, settings.tokenizer.fields().Bool(flag, false));
    const auto found = settings.SpecialToken(key, otherwise);
    return wanted && settings.sentence_piece && found.has_value() ? found->content : "";
  };
  ASSIGN_OR_RETURN(const std::string first, token("bos_token", "add_bos_token", bos));
  ASSIGN_OR_RETURN(const std::string last, token("eos_token", "add_eos_token", eos));
  std::vector<std::string> single, pair;
  for (const std::string& part : {first, std::string("$A"), last}) {
    if (part.empty()) continue;
    single.push_back(part);
  }
  pair = single;
  for (const std::string& part : {first, std::string("$B"), last}) {
    if (!part.empty()) pair.push_back(part + ":1");
  }
  return TemplateJson(single, pair);
}

// The normalizer of ALBERT and RemBERT up to the map of characters; `spaces` joins spaces.
std::vector<std::string> QuotesAndAccents(bool spaces, bool keeps_accents, bool lowercase) {
  std::vector<std::string> steps = {ReplaceJson("String", "``", "\""),
                                    ReplaceJson("String", "''", "\"")};
  if (spaces) steps.push_back(ReplaceJson("Regex", " {2,}", " "));
  if (!keeps_accents) {
    steps.push_back(R"({"type":"NFKD"})");
    steps.push_back(R"({"type":"StripAccents"})");
  }
  if (lowercase) steps.push_back(R"({"type":"Lowercase"})");
  return steps;
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
  std::vector<std::string> steps = QuotesAndAccents(false, accents, lowercase);
  steps.push_back(CharsmapJson(file));
  parts.normalizer = SequenceJson(steps);
  if (settings.sentence_piece.has_value()) {
    const JsonValue given = fields.json();
    const bool says_ends = given.Find("add_bos_token") || given.Find("add_eos_token");
    ASSIGN_OR_RETURN(const std::string ends, BosEosEnds(settings, "[CLS]", "[SEP]"));
    parts.post_processor = says_ends ? ends : BertEnds(settings);
  }
  return absl::OkStatus();
}

absl::Status LikeRemBert(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool lowercase, fields.Bool("do_lower_case", false));
  ASSIGN_OR_RETURN(const bool accents, fields.Bool("keep_accents", true));
  parts.model = UnigramOptions(2);
  std::vector<std::string> steps = QuotesAndAccents(true, accents, lowercase);
  steps.push_back(CharsmapJson(file));
  parts.normalizer = SequenceJson(steps);
  parts.pre_tokenizer = MetaspaceJson(prefix ? "always" : "never");
  // The class sets its own, and after that another one if tokenizer.json had none.
  const bool has_ends = !settings.sentence_piece && file.Find("post_processor");
  ASSIGN_OR_RETURN(const std::string ends, BosEosEnds(settings, "[CLS]", "[SEP]"));
  parts.post_processor = has_ends ? BertEnds(settings) : ends;
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

absl::Status LikePegasus(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  const std::string unk = settings.Token("unk_token", "<unk>"),
                    eos = settings.Token("eos_token", "</s>"), charsmap = CharsmapJson(file);
  const int64_t unk_id = UnknownPlace(file, unk, -1);
  if (unk_id < 0) {
    return Unexpected("model.vocab", absl::StrCat("\"", unk, "\" with a score of 0"), "none");
  }
  parts.model = UnigramOptions(unk_id);
  parts.normalizer = SequenceJson({charsmap == "null" ? ReplaceJson("String", "\n", " ") : charsmap,
                                   ReplaceJson("Regex", " {2,}", " ")});
  parts.pre_tokenizer = MetaspaceJson("always");
  parts.post_processor = TemplateJson({"$A", eos}, {"$A", "$B", eos});
  return absl::OkStatus();
}

absl::Status LikeMbart(const TokenizerSettings& settings, const Fields& file,
                       TokenizerOverrides& parts) {
  const std::string eos = settings.Token("eos_token", "</s>"),
                    language = settings.tokenizer.Text("src_lang").value_or("en_XX");
  parts.model = UnigramOptions(3);
  SentencePieceParts(file, true, parts);
  parts.normalizer = "null";
  parts.post_processor = TemplateJson({"$A", eos, language}, {"$A", "$B", eos, language});
  return absl::OkStatus();
}

absl::Status LikeMbart50(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  const std::string eos = settings.Token("eos_token", "</s>"),
                    language = settings.tokenizer.Text("src_lang").value_or("en_XX");
  parts.model = UnigramOptions(3);
  parts.normalizer = SequenceJson({CharsmapJson(file), ReplaceJson("Regex", " {2,}", " ")});
  parts.pre_tokenizer = MetaspaceJson("always");
  parts.post_processor = TemplateJson({language, "$A", eos}, {language, "$A", "$B", eos});
  return absl::OkStatus();
}

absl::Status LikeNllb(const TokenizerSettings& settings, const Fields& file,
                      TokenizerOverrides& parts) {
  const std::string eos = settings.Token("eos_token", "</s>"), charsmap = CharsmapJson(file),
                    language = settings.tokenizer.Text("src_lang").value_or("eng_Latn");
  ASSIGN_OR_RETURN(const bool legacy, settings.tokenizer.fields().Bool("legacy_behaviour", false));
  parts.model = BpeOptions(QuoteJson(settings.Token("unk_token", "<unk>")), true, false);
  parts.normalizer =
      charsmap == "null" ? charsmap : SequenceJson({charsmap, ReplaceJson("Regex", " {2,}", " ")});
  parts.pre_tokenizer = MetaspaceJson("always");
  parts.post_processor = legacy ? TemplateJson({"$A", eos, language}, {"$A", "$B", eos, language})
                                : TemplateJson({language, "$A", eos}, {language, "$A", "$B", eos});
  return absl::OkStatus();
}

absl::Status LikeDeberta(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts) {
  const Fields fields = settings.tokenizer.fields();
  ASSIGN_OR_RETURN(const bool lowercase, fields.Bool("do_lower_case", false));
  ASSIGN_OR_RETURN(const bool punctuation, fields.Bool("split_by_punct", false));
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  const std::optional<JsonValue> given = fields.Find("unk_id");
  int64_t unk_id = given.has_value() ? given->AsId().value_or(1) : 1;
  if (settings.sentence_piece.has_value()) unk_id = settings.sentence_piece->unk_id;
  parts.model = UnigramOptions(UnknownPlace(file, settings.Token("unk_token", "[UNK]"), unk_id));
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
  if (settings.sentence_piece.has_value()) {
    ASSIGN_OR_RETURN(parts.post_processor, BosEosEnds(settings, "<s>", "</s>"));
  }
  return absl::OkStatus();
}

absl::Status LikeGemma(const TokenizerSettings& settings, const Fields&,
                       TokenizerOverrides& parts) {
  parts.model = BpeOptions(QuoteJson(settings.Token("unk_token", "<unk>")), true, true);
  parts.normalizer = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  parts.pre_tokenizer =
      R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  if (settings.sentence_piece.has_value()) {
    ASSIGN_OR_RETURN(parts.post_processor, BosEosEnds(settings, "<bos>", "<eos>"));
  }
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
  parts.post_processor = RobertaJson(settings.Token("bos_token", "<|startoftext|>"),
                                     settings.Token("eos_token", "<|endoftext|>"), false, false);
  return absl::OkStatus();
}

}  // namespace attendant::text
