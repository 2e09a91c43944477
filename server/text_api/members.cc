#include "server/text_api/members.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant::server {
namespace {

using Kind = TextErrorKind;

// Objects with texts may have some further members.
size_t MostValues(const TextLimits& limits) { return 16 * limits.texts + 1024; }

// The last value of a name, unless that is null.
JsonValue* FindIn(JsonValue::Object& object, absl::string_view name) {
  const auto found = std::find_if(object.rbegin(), object.rend(),
                                  [&](const auto& member) { return member.first == name; });
  return found == object.rend() || found->second.is_null() ? nullptr : &found->second;
}

size_t CodePoints(const std::string& text) {
  return static_cast<size_t>(absl::c_count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Element(const std::string& field, size_t index) {
  return absl::StrCat(field, "[", index, "]");
}

}  // namespace

Members::Members(const TextRequest& request)
    : limits_(request.limits), status_(std::make_shared<absl::Status>()) {
  auto object = ParseJsonObject(request.body, MostValues(limits_));
  if (!object.ok()) {
    *status_ = object.status();
    return;
  }
  object_ = *std::move(object);
  JsonValue* parameters = FindIn(object_, "parameters");
  if (parameters == nullptr) return;
  if (auto* inside = parameters->As<JsonValue::Object>()) {
    parameters_ = std::move(*inside);
  } else {
    Refuse("parameters", "an object", Describe(*parameters));
  }
}

Members::Members(JsonValue::Object object, const std::string& prefix, const Members& outer)
    : limits_(outer.limits_), status_(outer.status_), prefix_(prefix), object_(std::move(object)) {}

void Members::Refuse(const std::string& name, const std::string& expected, const std::string& got,
                     Kind kind) {
  if (status_->ok()) *status_ = InvalidMember(name, expected, got, kind);
}

void Members::RefuseGiven(const char* name, const char* why) {
  if (!status_->ok() || !Has(name)) return;
  *status_ = TextError(Kind::kInvalid, absl::StrCat(name, ": ", why));
}

Members::Member Members::Find(const char* name) {
  if (JsonValue* value = FindIn(object_, name)) return {value, prefix_ + name};
  if (JsonValue* value = FindIn(parameters_, name)) {
    return {value, absl::StrCat("parameters.", name)};
  }
  return {nullptr, prefix_ + name};
}

Members::Member Members::Given(const char* name) {
  Member member = Find(name);
  if (member.value != nullptr) return member;
  const bool null = absl::c_any_of(object_, [&](const auto& one) { return one.first == name; });
  Refuse(member.field, "a value", null ? "null" : "none");
  return member;
}

bool Members::HasObject(const char* name) {
  const Member member = Find(name);
  return member.value != nullptr && member.value->As<JsonValue::Object>() != nullptr;
}

bool Members::Flag(const char* name, bool otherwise) {
  const Member member = Find(name);
  if (member.value == nullptr) return otherwise;
  if (const bool* flag = member.value->As<bool>()) return *flag;
  Refuse(member.field, "true or false", Describe(*member.value));
  return otherwise;
}

std::optional<int64_t> Members::Count(const char* name) {
  const Member member = Find(name);
  if (member.value == nullptr) return std::nullopt;
  const int64_t* integer = member.value->As<int64_t>();
  if (integer != nullptr && *integer >= 1) return *integer;
  Refuse(member.field, "an integer of at least 1", Describe(*member.value));
  return std::nullopt;
}

std::string Members::Name(const char* name) {
  const Member member = Find(name);
  if (member.value == nullptr) return "";
  if (auto* text = member.value->As<std::string>()) return *text;
  Refuse(member.field, "a string", Describe(*member.value));
  return "";
}

std::string Members::Choice(const char* name, std::initializer_list<absl::string_view> choices) {
  const Member member = Find(name);
  if (member.value == nullptr) return std::string(*choices.begin());
  if (const auto* text = member.value->As<std::string>()) {
    std::string chosen = absl::AsciiStrToLower(*text);
    if (absl::c_linear_search(choices, chosen)) return chosen;
  }
  const std::string all = absl::StrJoin(choices, "\" or \"");
  Refuse(member.field, absl::StrCat("\"", all, "\""), Describe(*member.value));
  return std::string(*choices.begin());
}

std::optional<std::vector<std::string>> Members::Names(const char* name) {
  const Member member = Find(name);
  if (member.value == nullptr) return std::nullopt;
  auto* list = member.value->As<JsonValue::List>();
  if (list == nullptr) {
    Refuse(member.field, "a list of strings", Describe(*member.value));
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < list->size(); ++i) {
    names.push_back(TakeText(Element(member.field, i), &(*list)[i]));
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
  const Member member = Find(name);
  if (member.value != nullptr && member.value->As<std::string>() != nullptr) {
    const std::string end = Choice(name, {"none", "start", "end"});
    return end == "end"     ? v1::TRUNCATE_RIGHT
           : end == "start" ? v1::TRUNCATE_LEFT
                            : v1::NO_TRUNCATION;
  }
  if (!Flag(name, limits_.truncate)) return v1::NO_TRUNCATION;
  return side;
}

Members Members::Object(const char* name) {
  const Member member = Given(name);
  JsonValue::Object* object = nullptr;
  if (member.value != nullptr) {
    object = member.value->As<JsonValue::Object>();
    if (object == nullptr) Refuse(member.field, "an object", Describe(*member.value));
  }
  return Members(object == nullptr ? JsonValue::Object() : std::move(*object), member.field + ".",
                 *this);
}

std::string Members::Text(const char* name, bool object) {
  const Member member = Given(name);
  if (member.value == nullptr) return "";
  return object ? TakeDocument(member.field, member.value).text
                : TakeText(member.field, member.value);
}

std::vector<TextInput> Members::Texts(const char* name, bool objects) {
  const Member member = Given(name);
  std::vector<TextInput> texts;
  JsonValue::List* list = ListOf(
      member, objects ? "a list of strings, or of objects with \"text\"" : "a list of strings");
  for (size_t i = 0; list != nullptr && i < list->size() && status_->ok(); ++i) {
    const std::string field = Element(member.field, i);
    JsonValue* value = &(*list)[i];
    texts.push_back(objects ? TakeDocument(field, value) : TextInput{TakeText(field, value)});
  }
  return texts;
}

std::vector<TextInput> Members::Contents(const char* name) {
  const Member member = Given(name);
  std::vector<TextInput> texts;
  JsonValue::List* list = ListOf(member, "a list of objects with \"content\"");
  for (size_t i = 0; list != nullptr && i < list->size() && status_->ok(); ++i) {
    texts.push_back(TakeContent(Element(member.field, i), &(*list)[i]));
  }
  return texts;
}

std::vector<TextInput> Members::TextOrTexts(const char* name, bool* batch) {
  const Member member = Find(name);
  const bool one = member.value != nullptr && member.value->As<std::string>() != nullptr;
  if (batch != nullptr) *batch = !one;
  return one ? std::vector<TextInput>{{TakeText(member.field, member.value)}} : Texts(name);
}

std::vector<TextInput> Members::Inputs(const char* name) {
  const Member member = Given(name);
  if (member.value == nullptr) return {};
  if (member.value->As<std::string>() != nullptr) return {{TakeText(member.field, member.value)}};
  auto* list = member.value->As<JsonValue::List>();
  const bool of_ids = list != nullptr && !list->empty() && (*list)[0].As<int64_t>() != nullptr;
  if (of_ids || member.value->As<JsonValue::Ids>() != nullptr) {
    return {TakeIds(member.field, member.value)};
  }
  list = ListOf(member, "a string, a list of strings, or token ids");
  std::vector<TextInput> inputs;
  for (size_t i = 0; list != nullptr && i < list->size() && status_->ok(); ++i) {
    const std::string field = Element(member.field, i);
    JsonValue* value = &(*list)[i];
    const bool ids = value->As<JsonValue::Ids>() != nullptr || value->As<JsonValue::List>();
    inputs.push_back(ids ? TakeIds(field, value) : TakeDocument(field, value));
  }
  return inputs;
}

std::vector<TextInput> Members::Pairs(const char* name, bool* batch) {
  const Member member = Given(name);
  *batch = false;
  if (member.value == nullptr) return {};
  if (member.value->As<std::string>() != nullptr) return {{TakeText(member.field, member.value)}};
  JsonValue::List* list =
      ListOf(member, "a string, a pair of strings, or a list of lists of one or two strings");
  std::vector<TextInput> pairs;
  if (list == nullptr) return pairs;
  if ((*list)[0].As<std::string>() != nullptr) return {TakePair(member.field, member.value)};
  *batch = true;
  for (size_t i = 0; i < list->size() && status_->ok(); ++i) {
    pairs.push_back(TakePair(Element(member.field, i), &(*list)[i]));
  }
  return pairs;
}

JsonValue::List* Members::ListOf(const Member& member, const char* expected) {
  if (member.value == nullptr) return nullptr;
  auto* list = member.value->As<JsonValue::List>();
  const auto* ids = member.value->As<JsonValue::Ids>();
  if (ids != nullptr) {
    Refuse(Element(member.field, 0), "a string", absl::StrCat(ids->front()));
  } else if (list == nullptr) {
    Refuse(member.field, expected, Describe(*member.value));
  } else if (list->empty()) {
    Refuse(member.field, expected, "an empty list", Kind::kEmpty);
  } else if (list->size() > limits_.texts) {
    Refuse(member.field, absl::StrCat("at most ", limits_.texts, " elements"),
           absl::StrCat(list->size()), Kind::kOversized);
  }
  return status_->ok() ? list : nullptr;
}

std::string Members::TakeText(const std::string& field, JsonValue* value) {
  auto* text = value->As<std::string>();
  if (text == nullptr) {
    Refuse(field, "a string", Describe(*value));
    return "";
  }
  if (text->size() > limits_.text_characters) {
    const size_t characters = CodePoints(*text);
    if (characters > limits_.text_characters) {
      Refuse(field, absl::StrCat("at most ", limits_.text_characters, " characters"),
             absl::StrCat(characters), Kind::kOversized);
    }
  }
  return std::move(*text);
}

TextInput Members::TakeIds(const std::string& field, JsonValue* value) {
  constexpr char kExpected[] = "a token id, an integer in 0..2147483647";
  if (const auto* list = value->As<JsonValue::List>()) {  // not of integers of 32 bits only
    if (list->empty()) Refuse(field, "at least one token id", "an empty list", Kind::kEmpty);
    for (size_t i = 0; i < list->size() && status_->ok(); ++i) {
      const int64_t* id = (*list)[i].As<int64_t>();
      if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
        Refuse(Element(field, i), kExpected, Describe((*list)[i]));
      }
    }
    return {};
  }
  auto& ids = *value->As<JsonValue::Ids>();
  if (ids.size() > limits_.text_characters) {
    Refuse(field, absl::StrCat("at most ", limits_.text_characters, " token ids"),
           absl::StrCat(ids.size()), Kind::kOversized);
  }
  const auto below = absl::c_find_if(ids, [](int32_t id) { return id < 0; });
  if (below != ids.end()) {
    const auto place = static_cast<size_t>(below - ids.begin());
    Refuse(Element(field, place), kExpected, absl::StrCat(*below));
  }
  return {"", std::nullopt, std::move(ids)};
}

TextInput Members::TakeDocument(const std::string& field, JsonValue* value) {
  auto* object = value->As<JsonValue::Object>();
  if (object == nullptr) return {TakeText(field, value)};
  JsonValue none;
  JsonValue* text = FindIn(*object, "text");
  return {TakeText(field + ".text", text == nullptr ? &none : text)};
}

TextInput Members::TakeContent(const std::string& field, JsonValue* value) {
  JsonValue none;
  auto* object = value->As<JsonValue::Object>();
  JsonValue* content = object == nullptr ? nullptr : FindIn(*object, "content");
  if (content == nullptr) content = &none;
  auto* parts = content->As<JsonValue::List>();
  if (parts == nullptr || parts->size() != 1) {
    Refuse(field + ".content", "a list of one text", Describe(*content));
    return {};
  }
  auto* part = parts->front().As<JsonValue::Object>();
  const JsonValue* type = part == nullptr ? nullptr : FindIn(*part, "type");
  const auto* kind = type == nullptr ? nullptr : type->As<std::string>();
  if (kind == nullptr || *kind != "text") {
    Refuse(field + ".content[0].type", "\"text\" (only texts are embedded)",
           Describe(type == nullptr ? none : *type));
    return {};
  }
  return TakeDocument(field + ".content[0]", &parts->front());
}

TextInput Members::TakePair(const std::string& field, JsonValue* value) {
  auto* list = value->As<JsonValue::List>();
  if (list == nullptr || list->empty() || list->size() > 2) {
    Refuse(field, "a list of one or two strings", Describe(*value));
    return {};
  }
  TextInput input = {TakeText(Element(field, 0), list->data())};
  if (list->size() == 2) input.pair = TakeText(Element(field, 1), list->data() + 1);
  return input;
}

}  // namespace attendant::server
