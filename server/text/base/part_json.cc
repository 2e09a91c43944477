#include "server/text/base/part_json.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

std::string BoolJson(bool value) { return value ? "true" : "false"; }

std::string IdOf(absl::string_view token) { return absl::StrCat("{{", token, "}}"); }

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

std::string RobertaJson(const std::string& cls, const std::string& sep, bool trims, bool prefix) {
  return absl::StrCat(R"({"type":"RobertaProcessing","sep":[)", QuoteJson(sep), ",", IdOf(sep),
                      R"(],"cls":[)", QuoteJson(cls), ",", IdOf(cls), R"(],"trim_offsets":)",
                      BoolJson(trims), R"(,"add_prefix_space":)", BoolJson(prefix), "}");
}

std::string BpeOptions(absl::string_view unk, bool fuse_unk, bool byte_fallback,
                       absl::string_view suffix) {
  return absl::StrCat(R"({"dropout":null,"ignore_merges":false,"continuing_subword_prefix":"",)",
                      R"("unk_token":)", unk, R"(,"fuse_unk":)", BoolJson(fuse_unk),
                      R"(,"byte_fallback":)", BoolJson(byte_fallback), R"(,"end_of_word_suffix":)",
                      QuoteJson(suffix), "}");
}

std::string ByteLevelJson(bool prefix, bool use_regex) {
  return absl::StrCat(R"({"type":"ByteLevel","trim_offsets":true,"use_regex":)",
                      BoolJson(use_regex), R"(,"add_prefix_space":)", BoolJson(prefix), "}");
}

std::string MetaspaceJson(absl::string_view scheme, bool split) {
  return absl::StrCat(R"({"type":"Metaspace","replacement":"▁","split":)", BoolJson(split),
                      R"(,"prepend_scheme":")", scheme, "\"}");
}

std::string UnigramOptions(int64_t unk_id) {
  return absl::StrCat(R"({"byte_fallback":false,"unk_id":)", unk_id, "}");
}

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

std::string ReplaceJson(absl::string_view kind, absl::string_view pattern,
                        absl::string_view content) {
  return absl::StrCat(R"({"type":"Replace","pattern":{")", kind, "\":", QuoteJson(pattern),
                      R"(},"content":)", QuoteJson(content), "}");
}

std::string SequenceJson(const std::vector<std::string>& steps) {
  std::string list;
  for (const std::string& step : steps) {
    if (step != "null") absl::StrAppend(&list, list.empty() ? "" : ",", step);
  }
  return absl::StrCat(R"({"type":"Sequence","normalizers":[)", list, "]}");
}

}  // namespace attendant::text
