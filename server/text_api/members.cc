#include "server/text_api/members.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/text_api/json_body.h"

namespace attendant::server {
namespace {

using Kind = TextErrorKind;
using text::JsonValue;

// Objects with texts may have some further members.
size_t MostValues(const TextLimits& limits) { return 16 * limits.texts + 1024; }

// Returns a member unless it is null.
std::optional<JsonValue> FindIn(const std::optional<JsonValue>& object, absl::string_view name) {
  const std::optional<JsonValue> found = object ? object->Find(name) : std::nullopt;
  return found && found->is_null() ? std::nullopt : found;
}

std::optional<JsonValue> FirstOf(const std::optional<JsonValue>& list) {
  return list ? list->First() : std::nullopt;
}

// Returns whether a value is a non-empty list of token ids.
bool IsIds(JsonValue value) {
  const std::optional<JsonValue> first = value.First();
  if (!first || !first->AsInteger()) return false;
  bool all = true;
  value.ForEach([&](absl::string_view, JsonValue each) {
    const std::optional<int64_t> integer = each.AsInteger();
    all = all && integer && *integer == static_cast<int32_t>(*integer);
  });
  return all;
}

// Returns an integer, which JSON can also write as 2.0 or 2e0.
std::optional<int64_t> WholeNumber(JsonValue value) {
  constexpr double kMost = 1e15;  // below it, a double is exact
  double number = 0;
  if (value.kind() != JsonValue::Kind::kNumber) return std::nullopt;
  if (const std::optional<int64_t> integer = value.AsInteger()) return integer;
  if (!absl::SimpleAtod(value.text(), &number) || std::abs(number) > kMost) return std::nullopt;
  return std::trunc(number) == number ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

size_t CodePoints(absl::string_view text) {
  return static_cast<size_t>(absl::c_count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Element(const std::string& field, size_t index) {
  return absl::StrCat(field, "[", index, "]");
}

}  // namespace

Members::Members(const TextRequest& request)
    : limits_(request.limits), status_(std::make_shared<absl::Status>()) {
  auto tree = ParseJsonObject(request.body, MostValues(limits_));
  if (!tree.ok()) {
    *status_ = tree.status();
    return;
  }
  tree_ = *std::move(tree);
  object_ = tree_->root();
  parameters_ = FindIn(object_, "parameters");
  if (parameters_ && !parameters_->is_object()) {
    Refuse("parameters", "an object", Describe(*parameters_));
  }
}

Members::Members(const Member& object, const Members& outer)
    : limits_(outer.limits_),
      status_(outer.status_),
      tree_(outer.tree_),
      prefix_(object.field + "."),
      object_(object.value) {}

void Members::Refuse(const std::string& name, const std::string& expected, const std::string& got,
                     Kind kind) {
  if (status_->ok()) *status_ = InvalidMember(name, expected, got, kind);
}

void Members::Refuse(const Member& value, const std::string& expected) {
  Refuse(value.field, expected, value.value ? Describe(*value.value) : "null");
}

void Members::RefuseGiven(const char* name, const char* why) {
  if (!status_->ok() || !Has(name)) return;
  *status_ = TextError(Kind::kInvalid, absl::StrCat(name, ": ", why));
}

Members::Member Members::Find(const char* name) const {
  if (const auto value = FindIn(object_, name)) return {value, prefix_ + name};
  if (const auto value = FindIn(parameters_, name)) {
    return {value, absl::StrCat("parameters.", name)};
  }
  return {std::nullopt, prefix_ + name};
}

Members::Member Members::Given(const char* name) {
  Member member = Find(name);
  if (member.value) return member;
  Refuse(member.field, "a value", object_ && object_->Find(name) ? "null" : "none");
  return member;
}

bool Members::HasObject(const char* name) const {
  const Member member = Find(name);
  return member.value && member.value->is_object();
}

bool Members::Flag(const char* name, bool otherwise) {
  const Member member = Find(name);
  if (!member.value) return otherwise;
  const std::optional<bool> flag = member.value->AsBool();
  if (!flag) Refuse(member, "true or false");
  return flag.value_or(otherwise);
}

std::optional<int64_t> Members::Count(const char* name) {
  const Member member = Find(name);
  if (!member.value) return std::nullopt;
  const std::optional<int64_t> integer = WholeNumber(*member.value);
  if (integer && *integer >= 1) return integer;
  Refuse(member, "an integer of at least 1");
  return std::nullopt;
}

std::string Members::Name(const char* name) {
  const Member member = Find(name);
  if (!member.value) return "";
  if (!member.is_string()) Refuse(member, "a string");
  return std::string(member.value->text());
}

std::string Members::Choice(const char* name, std::initializer_list<absl::string_view> choices) {
  const Member member = Find(name);
  if (member.is_string()) {
    std::string chosen = absl::AsciiStrToLower(member.value->text());
    if (absl::c_linear_search(choices, chosen)) return chosen;
  }
  if (member.value) Refuse(member, absl::StrCat("\"", absl::StrJoin(choices, "\" or \""), "\""));
  return std::string(*choices.begin());
}

std::optional<std::vector<std::string>> Members::Names(const char* name) {
  const Member member = Find(name);
  if (!member.value) return std::nullopt;
  if (!member.value->is_array() || IsIds(*member.value)) {
    Refuse(member, "a list of strings");
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const JsonValue& value : member.value->Elements()) {
    names.push_back(TakeText({value, Element(member.field, names.size())}).text);
    if (!status_->ok()) break;
  }
  return names;
}

std::optional<v1::Truncation> Members::Truncation(const char* other) {
  std::optional<v1::Truncation> side;
  if (Has("truncation_direction")) {
    const bool left = Choice("truncation_direction", {"right", "left"}) == "left";
    side = left ? v1::TRUNCATE_LEFT : v1::TRUNCATE_RIGHT;
  }
  const char* name = other == nullptr || Has("truncate") ? "truncate" : other;
  if (Find(name).is_string()) {
    const std::string end = Choice(name, {"none", "start", "end"});
    return end == "end"     ? v1::TRUNCATE_RIGHT
           : end == "start" ? v1::TRUNCATE_LEFT
                            : v1::NO_TRUNCATION;
  }
  if (!Flag(name, true)) return v1::NO_TRUNCATION;
  return side;
}

Members Members::Object(const char* name) {
  Member member = Given(name);
  if (member.value && !member.value->is_object()) Refuse(member, "an object");
  return Members(member, *this);
}

std::string Members::Text(const char* name, bool object) {
  const Member member = Given(name);
  return (object ? TakeDocument(member) : TakeText(member)).text;
}

std::vector<TextInput> Members::Texts(const char* name, bool objects) {
  if (!objects) return Each(Given(name), "a list of strings", &Members::TakeText);
  return Each(Given(name), "a list of strings, or of objects with \"text\"",
              &Members::TakeDocument);
}

std::vector<TextInput> Members::Contents(const char* name) {
  return Each(Given(name), "a list of objects with \"content\"", &Members::TakeContent);
}

std::vector<TextInput> Members::TextOrTexts(const char* name, bool* batch) {
  const Member member = Find(name);
  if (batch != nullptr) *batch = !member.is_string();
  return member.is_string() ? std::vector<TextInput>{TakeText(member)} : Texts(name);
}

std::vector<TextInput> Members::Inputs(const char* name, std::string* field) {
  *field = name;
  const Member member = Given(name);
  if (member.is_string()) return {TakeText(member)};
  const std::optional<JsonValue> first = FirstOf(member.value);
  if (first && first->AsInteger()) return {TakeIds(member)};
  if (first && first->is_array() && member.value->size() == 1) *field = Element(name, 0);
  return Each(member, "a string, a list of strings, or token ids", &Members::TakeInput);
}

std::vector<TextInput> Members::Pairs(const char* name, bool* batch) {
  const Member member = Given(name);
  *batch = false;
  if (member.is_string()) return {TakeText(member)};
  constexpr char kExpected[] =
      "a string, a pair of strings, or a list of lists of one or two strings";
  if (!CheckList(member, kExpected)) return {};
  *batch = !FirstOf(member.value)->is_string();
  if (!*batch) return {TakePair(member)};
  return Each(member, kExpected, &Members::TakePair);
}

bool Members::CheckList(const Member& member, const char* expected) {
  if (!member.value) return false;
  const size_t size = member.value->size();
  if (!member.value->is_array()) {
    Refuse(member, expected);
  } else if (size == 0) {
    Refuse(member.field, expected, "an empty list", Kind::kEmpty);
  } else if (IsIds(*member.value)) {
    Refuse({FirstOf(member.value), Element(member.field, 0)}, "a string");
  } else if (size > limits_.texts) {
    Refuse(member.field, absl::StrCat("at most ", limits_.texts, " elements"), absl::StrCat(size),
           Kind::kOversized);
  }
  return status_->ok();
}

std::vector<TextInput> Members::Each(const Member& list, const char* expected, Take take) {
  std::vector<TextInput> inputs;
  if (!CheckList(list, expected)) return inputs;
  inputs.reserve(list.value->size());
  for (const JsonValue& value : list.value->Elements()) {
    inputs.push_back((this->*take)({value, Element(list.field, inputs.size())}));
    if (!status_->ok()) break;
  }
  return inputs;
}

TextInput Members::TakeText(const Member& value) {
  if (!value.is_string()) {
    Refuse(value, "a string");
    return {};
  }
  const absl::string_view text = value.value->text();
  const size_t characters = text.size() > limits_.text_characters ? CodePoints(text) : 0;
  if (characters > limits_.text_characters) {
    Refuse(value.field, absl::StrCat("at most ", limits_.text_characters, " characters"),
           absl::StrCat(characters), Kind::kOversized);
  }
  return {std::string(text)};
}

TextInput Members::TakeIds(const Member& value) {
  const size_t size = value.value->size();
  if (size == 0) Refuse(value.field, "at least one token id", "an empty list", Kind::kEmpty);
  if (size > limits_.text_characters) {
    Refuse(value.field, absl::StrCat("at most ", limits_.text_characters, " token ids"),
           absl::StrCat(size), Kind::kOversized);
  }
  if (!status_->ok()) return {};
  std::vector<int32_t> ids;
  ids.reserve(size);
  value.value->ForEach([&](absl::string_view, JsonValue one) {
    const std::optional<uint32_t> id = one.AsId();
    if (!id || *id > std::numeric_limits<int32_t>::max()) {
      Refuse({one, Element(value.field, ids.size())}, "a token id, an integer in 0..2147483647");
    }
    ids.push_back(static_cast<int32_t>(id.value_or(0)));
  });
  return {"", std::nullopt, std::move(ids)};
}

TextInput Members::TakeDocument(const Member& value) {
  if (!value.value || !value.value->is_object()) return TakeText(value);
  return TakeText({FindIn(value.value, "text"), value.field + ".text"});
}

TextInput Members::TakeInput(const Member& value) {
  return value.value->is_array() ? TakeIds(value) : TakeDocument(value);
}

TextInput Members::TakeContent(const Member& value) {
  const Member content = {FindIn(value.value, "content"), value.field + ".content"};
  const Member part = {FirstOf(content.value), content.field + "[0]"};
  if (!part.value || content.value->size() != 1) {
    Refuse(content, "a list of one text");
    return {};
  }
  const Member type = {FindIn(part.value, "type"), part.field + ".type"};
  if (!type.is_string() || type.value->text() != "text") {
    Refuse(type, "\"text\" (only texts are embedded)");
    return {};
  }
  return TakeDocument(part);
}

TextInput Members::TakePair(const Member& value) {
  const size_t size = value.value->is_array() ? value.value->size() : 0;
  if (size == 0 || size > 2 || IsIds(*value.value)) {
    Refuse(value, "a list of one or two strings");
    return {};
  }
  const std::vector<JsonValue> texts = value.value->Elements();
  TextInput input = TakeText({texts[0], Element(value.field, 0)});
  if (texts.size() == 2) input.pair = TakeText({texts[1], Element(value.field, 1)}).text;
  return input;
}

}  // namespace attendant::server
