#include "server/text/post_processor.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"

namespace attendant::text {
namespace {

using Kind = TemplatePart::Kind;
using SpecialIds = std::map<std::string, std::vector<uint32_t>, std::less<>>;

absl::StatusOr<SpecialIds> LoadSpecialIds(const Fields& fields) {
  ASSIGN_OR_RETURN(const JsonValue json, fields.Get("special_tokens"));
  if (!json.is_object()) return Unexpected(fields.PathOf("special_tokens"), "an object", json);
  SpecialIds special;
  const std::vector<absl::string_view> keys = json.Keys();
  const std::vector<JsonValue> values = json.Elements();
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string path = absl::StrCat(fields.PathOf("special_tokens"), ".", keys[i]);
    ASSIGN_OR_RETURN(const Fields token, Fields::Open(values[i], path));
    ASSIGN_OR_RETURN(const std::vector<JsonValue> ids, token.Array("ids"));
    std::vector<uint32_t>& read = special[std::string(keys[i])];
    read.clear();  // the last of equal keys counts
    for (const JsonValue& value : ids) {
      const std::optional<uint32_t> id = value.AsId();
      if (!id.has_value()) return Unexpected(token.PathOf("ids"), "ids", value);
      read.push_back(*id);
    }
  }
  return special;
}

absl::StatusOr<TemplatePart> LoadPart(JsonValue json, const std::string& path,
                                      const SpecialIds& special) {
  const std::optional<JsonValue> sequence = json.Find("Sequence");
  const std::optional<JsonValue> token = json.Find("SpecialToken");
  if (sequence.has_value() == token.has_value()) {
    return Unexpected(path, "a Sequence or a SpecialToken", json);
  }
  ASSIGN_OR_RETURN(const Fields fields,
                   Fields::Open(sequence.has_value() ? *sequence : *token, path));
  ASSIGN_OR_RETURN(const std::string id, fields.String("id"));
  ASSIGN_OR_RETURN(const uint32_t type_id, fields.Id("type_id"));
  if (sequence.has_value()) {
    if (id == "A") return TemplatePart{Kind::kFirst, type_id, {}};
    if (id == "B") return TemplatePart{Kind::kSecond, type_id, {}};
    return Unexpected(fields.PathOf("id"), "A or B", *fields.Find("id"));
  }
  const auto found = special.find(id);
  if (found == special.end()) {
    return Unexpected(fields.PathOf("id"), "a key of special_tokens", *fields.Find("id"));
  }
  return TemplatePart{Kind::kSpecial, type_id, found->second};
}

absl::Status LoadParts(const Fields& fields, absl::string_view key, const SpecialIds& special,
                       std::vector<TemplatePart>& parts) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> list, fields.Array(key));
  parts.clear();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = absl::StrCat(fields.PathOf(key), "[", i, "]");
    ASSIGN_OR_RETURN(TemplatePart part, LoadPart(list[i], path, special));
    if (part.kind == Kind::kSecond && key == "single") {
      return Unexpected(path, "A (there is one text)", "B");
    }
    parts.push_back(std::move(part));
  }
  return absl::OkStatus();
}

absl::Status LoadTemplate(const Fields& fields, PostProcessor& processor) {
  ASSIGN_OR_RETURN(const SpecialIds special, LoadSpecialIds(fields));
  absl::Status status = LoadParts(fields, "single", special, processor.single);
  if (status.ok()) status = LoadParts(fields, "pair", special, processor.pair);
  return status;
}

// A token's text and its id.
absl::StatusOr<uint32_t> LoadTextAndId(const Fields& fields, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> pair, fields.Array(key));
  const std::optional<uint32_t> id = pair.size() == 2 ? pair[1].AsId() : std::nullopt;
  if (!id.has_value()) {
    return Unexpected(fields.PathOf(key), "a token and its id", *fields.Find(key));
  }
  return *id;
}

absl::Status LoadClsAndSep(const Fields& fields, bool is_roberta, PostProcessor& processor) {
  ASSIGN_OR_RETURN(const uint32_t cls, LoadTextAndId(fields, "cls"));
  ASSIGN_OR_RETURN(const uint32_t sep, LoadTextAndId(fields, "sep"));
  const uint32_t second = is_roberta ? 0 : 1;
  processor.single = {
      {Kind::kSpecial, 0, {cls}}, {Kind::kFirst, 0, {}}, {Kind::kSpecial, 0, {sep}}};
  processor.pair = processor.single;
  if (is_roberta) processor.pair.push_back({Kind::kSpecial, 0, {sep}});
  processor.pair.push_back({Kind::kSecond, second, {}});
  processor.pair.push_back({Kind::kSpecial, second, {sep}});
  return absl::OkStatus();
}

absl::Status LoadTrim(const Fields& fields, PostProcessor& processor) {
  ASSIGN_OR_RETURN(const bool trims, fields.Bool("trim_offsets"));
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space"));
  if (trims) processor.trims.push_back(prefix);
  return absl::OkStatus();
}

// Reads one step; `has_template` is whether one before it has said which tokens are added.
absl::Status LoadStep(JsonValue json, const std::string& field, bool& has_template,
                      PostProcessor& processor) {
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(json, field));
  ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonValue> steps, fields.Array("processors"));
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string path = absl::StrCat(fields.PathOf("processors"), "[", i, "]");
      RETURN_IF_ERROR(LoadStep(steps[i], path, has_template, processor));
    }
    return absl::OkStatus();
  }
  if (type == "ByteLevel") return LoadTrim(fields, processor);
  if (has_template) {
    return Unsupported(fields.PathOf("type"), "a second processor that adds tokens is", "only one");
  }
  has_template = true;
  if (type == "TemplateProcessing") return LoadTemplate(fields, processor);
  if (type == "BertProcessing") return LoadClsAndSep(fields, false, processor);
  if (type == "RobertaProcessing") {
    RETURN_IF_ERROR(LoadTrim(fields, processor));
    return LoadClsAndSep(fields, true, processor);
  }
  return Unsupported(
      fields.PathOf("type"), fields.Find("type")->Describe(),
      "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence");
}

}  // namespace

size_t PostProcessor::special_tokens(bool is_pair) const {
  size_t count = 0;
  for (const TemplatePart& part : parts(is_pair)) count += part.ids.size();
  return count;
}

absl::StatusOr<PostProcessor> LoadPostProcessor(const std::optional<JsonValue>& json,
                                                const std::string& field) {
  PostProcessor processor;
  if (!json || json->is_null()) return processor;
  bool has_template = false;
  RETURN_IF_ERROR(LoadStep(*json, field, has_template, processor));
  return processor;
}

void Trim(const Padding& padding, bool is_first, bool keeps_prefix, uint32_t& begin,
          uint32_t& end) {
  uint32_t leading = padding.leading;
  if ((is_first || begin == 0) && keeps_prefix && leading == 1) leading = 0;
  if (padding.leading > 0) begin = std::min(begin + leading, end);
  if (padding.trailing > 0 && end >= padding.trailing) {
    end = std::max(end - padding.trailing, begin);
  }
}

std::pair<size_t, size_t> TruncatePair(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const bool swapped = first > second;
  size_t shorter = std::min(first, second), longer = shorter;
  if (shorter <= room) longer = std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace attendant::text
