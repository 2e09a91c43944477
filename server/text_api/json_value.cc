#include "server/text_api/json_value.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/text_error.h"

namespace attendant::server {
namespace {

constexpr size_t kMostDepth = 32;
constexpr size_t kMostShown = 40;  // bytes of a value, in messages

// Builds the value from events of the parser, and knows where it is when one fails.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(size_t most_values) : values_left_(most_values) {}

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({value}); }
  bool number_integer(number_integer_t value) override { return AddInteger(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max());
    if (value > kMost) return Add({JsonValue::Number{absl::StrCat(value)}});
    return AddInteger(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Add({JsonValue::Number{text.substr(0, kMostShown + 1)}});
  }
  bool string(string_t& value) override { return Add({std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // there is none in JSON
  bool start_object(std::size_t) override { return Enter({JsonValue::Object()}); }
  bool start_array(std::size_t) override { return Enter({JsonValue::List()}); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(string_t& name) override {
    frames_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

  absl::Status status;
  JsonValue root;

 private:
  struct Frame {
    JsonValue value;       // a list or an object
    std::string key = {};  // of the member that comes
  };

  bool AddInteger(int64_t value);
  bool Add(JsonValue value) { return CountValue(1) && Place(std::move(value)); }
  bool Place(JsonValue value);
  bool Enter(JsonValue value);
  bool Leave();
  bool CountValue(size_t count);
  bool Fail(TextErrorKind kind, const std::string& expected, const std::string& got);
  std::string Path() const;

  std::vector<Frame> frames_;
  size_t values_left_;
};

// "inputs[1].text".
std::string JsonBuilder::Path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (const auto* ids = frame.value.As<JsonValue::Ids>()) {
      absl::StrAppend(&path, "[", ids->size(), "]");
    } else if (const auto* list = frame.value.As<JsonValue::List>()) {
      absl::StrAppend(&path, "[", list->size(), "]");
    } else if (!frame.key.empty()) {
      absl::StrAppend(&path, path.empty() ? "" : ".", frame.key.substr(0, kMostShown));
    }
  }
  return path.empty() ? "the body" : path;
}

bool JsonBuilder::Fail(TextErrorKind kind, const std::string& expected, const std::string& got) {
  if (status.ok()) status = InvalidMember(Path(), expected, got, kind);
  return false;
}

bool JsonBuilder::CountValue(size_t count) {
  if (values_left_ < count) {
    frames_.clear();
    return Fail(TextErrorKind::kOversized, "fewer lists, objects, strings and numbers", "too many");
  }
  values_left_ -= count;
  return true;
}

bool JsonBuilder::AddInteger(int64_t value) {
  const bool id = value == static_cast<int32_t>(value);
  if (id && !frames_.empty()) {
    JsonValue& parent = frames_.back().value;
    const auto* list = parent.As<JsonValue::List>();
    if (list != nullptr && list->empty()) parent.value = JsonValue::Ids();
    if (auto* ids = parent.As<JsonValue::Ids>()) {
      ids->push_back(static_cast<int32_t>(value));
      return true;
    }
  }
  return Add({value});
}

bool JsonBuilder::Place(JsonValue value) {
  if (frames_.empty()) {
    root = std::move(value);
    return true;
  }
  Frame& frame = frames_.back();
  if (auto* object = frame.value.As<JsonValue::Object>()) {
    object->emplace_back(std::move(frame.key), std::move(value));
    frame.key.clear();
    return true;
  }
  if (const auto* ids = frame.value.As<JsonValue::Ids>()) {
    if (!CountValue(ids->size())) return false;
    JsonValue::List list;
    for (const int32_t id : *ids) list.push_back({int64_t{id}});
    frame.value.value = std::move(list);
  }
  frame.value.As<JsonValue::List>()->push_back(std::move(value));
  return true;
}

bool JsonBuilder::Enter(JsonValue value) {
  if (frames_.size() == kMostDepth) {
    frames_.clear();
    return Fail(TextErrorKind::kMalformed,
                absl::StrCat("at most ", kMostDepth, " nested lists and objects"), "more");
  }
  if (!CountValue(1)) return false;
  frames_.push_back({std::move(value)});
  return true;
}

bool JsonBuilder::Leave() {
  JsonValue value = std::move(frames_.back().value);
  frames_.pop_back();
  return Place(std::move(value));
}

bool JsonBuilder::parse_error(std::size_t position, const std::string& token,
                              const nlohmann::detail::exception& error) {
  constexpr int kOutOfRange = 406;  // the library's number for a float that is too large
  const std::string at = absl::StrCat(" at byte ", position);
  if (error.id == kOutOfRange) {
    return Fail(TextErrorKind::kInvalid, "a number in the range of float64",
                Describe({JsonValue::Number{token.substr(0, kMostShown + 1)}}));
  }
  const bool surrogate = absl::StrContains(error.what(), "invalid string: surrogate U+");
  if (surrogate || absl::StrContains(error.what(), "invalid string: ill-formed UTF-8")) {
    return Fail(
        TextErrorKind::kUntokenizable, "a string of Unicode characters",
        absl::StrCat(surrogate ? "half a surrogate pair" : "invalid UTF-8", at, " of the body"));
  }
  frames_.clear();
  return Fail(TextErrorKind::kMalformed, "a JSON object", "invalid JSON" + at);
}

}  // namespace

absl::StatusOr<JsonValue::Object> ParseJsonObject(std::string_view body, size_t most_values) {
  if (body.empty()) {
    return InvalidMember("the body", "a JSON object", "no body", TextErrorKind::kMalformed);
  }
  JsonBuilder builder(most_values);
  if (!nlohmann::json::sax_parse(body.begin(), body.end(), &builder)) return builder.status;
  if (auto* object = builder.root.As<JsonValue::Object>()) return std::move(*object);
  return InvalidMember("the body", "a JSON object", Describe(builder.root));
}

std::string Describe(const JsonValue& value) {
  if (const auto* flag = value.As<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = value.As<int64_t>()) return absl::StrCat(*integer);
  if (const auto* number = value.As<JsonValue::Number>()) {
    return number->text.size() > kMostShown ? "a number with many digits" : number->text;
  }
  if (const auto* text = value.As<std::string>()) {
    if (text->size() <= kMostShown) return text::QuoteJson(*text);
    size_t end = kMostShown;
    while (end > 0 && ((*text)[end] & 0xc0) == 0x80) --end;  // not within a character
    return text::QuoteJson(text->substr(0, end) + "…");
  }
  if (const auto* ids = value.As<JsonValue::Ids>()) return absl::StrCat("a list of ", ids->size());
  if (const auto* list = value.As<JsonValue::List>()) {
    return list->empty() ? "an empty list" : absl::StrCat("a list of ", list->size());
  }
  return value.is_null() ? "null" : "an object";
}

}  // namespace attendant::server
