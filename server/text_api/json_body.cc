#include "server/text_api/json_body.h"

#include "absl/strings/str_cat.h"
#include "server/text_api/text_error.h"

namespace attendant::server {
namespace {

using Fault = text::JsonFault;

constexpr size_t kMostDepth = 32;
constexpr size_t kMostShown = 40;  // bytes of a value, in messages

std::string DescribeNumber(absl::string_view number) {
  return number.size() > kMostShown ? "a number with many digits" : std::string(number);
}

absl::Status ErrorOf(const Fault& fault) {
  const std::string body = "the body", field = fault.path.empty() ? body : fault.path,
                    at = absl::StrCat(" at byte ", fault.byte);
  switch (fault.kind) {
    case Fault::Kind::kNumber:
      return InvalidMember(field, "a number in the range of float64", DescribeNumber(fault.got));
    case Fault::Kind::kUtf8:
    case Fault::Kind::kSurrogate: {
      const bool is_utf8 = fault.kind == Fault::Kind::kUtf8;
      return InvalidMember(
          field, "a string of Unicode characters",
          absl::StrCat(is_utf8 ? "invalid UTF-8" : "half a surrogate pair", at, " of the body"),
          TextErrorKind::kUntokenizable);
    }
    case Fault::Kind::kValues:
      return InvalidMember(body, "fewer lists, objects, strings and numbers", "too many",
                           TextErrorKind::kOversized);
    case Fault::Kind::kDepth:
      return InvalidMember(body, absl::StrCat("at most ", kMostDepth, " nested lists and objects"),
                           "more", TextErrorKind::kMalformed);
    case Fault::Kind::kSyntax:
      break;
  }
  return InvalidMember(body, "a JSON object", "invalid JSON" + at, TextErrorKind::kMalformed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const text::JsonTree>> ParseJsonObject(std::string_view body,
                                                                      size_t most_values) {
  if (body.empty()) {
    return InvalidMember("the body", "a JSON object", "no body", TextErrorKind::kMalformed);
  }
  Fault fault;
  std::unique_ptr<const text::JsonTree> tree = text::JsonTree::Parse(
      absl::string_view(body.data(), body.size()),
      text::JsonLimits{.values = most_values, .depth = kMostDepth, .counts_ids = false}, fault);
  if (tree == nullptr) return ErrorOf(fault);
  if (!tree->root().is_object()) {
    return InvalidMember("the body", "a JSON object", Describe(tree->root()));
  }
  return tree;
}

std::string Describe(text::JsonValue value) {
  if (value.is_string()) return DescribeText(value.text());
  if (value.is_array()) {
    return value.size() == 0 ? "an empty list" : absl::StrCat("a list of ", value.size());
  }
  return value.kind() == text::JsonValue::Kind::kNumber ? DescribeNumber(value.text())
                                                        : value.Describe();
}

std::string DescribeText(absl::string_view text) {
  if (text.size() <= kMostShown) return text::QuoteJson(text);
  size_t end = kMostShown;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
  return text::QuoteJson(absl::StrCat(text.substr(0, end), "…"));
}

}  // namespace attendant::server
