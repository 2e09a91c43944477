#include "server/rest/infer_json_reader.h"

#include <istream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using At = InferJsonReader::At;
using Kind = InferValue::Kind;

constexpr size_t kMostDepth = 32, kMostKeys = 64;

// Returns the place of the member `key`, a list or an object, inside `at`.
std::optional<At> NestedIn(At at, const std::string& key) {
  switch (at) {
    case At::kRoot:
      if (key == "inputs") return At::kInputs;
      if (key == "outputs") return At::kOutputs;
      if (key == "parameters") return At::kParameters;
      if (key == "id") return std::nullopt;
      break;
    case At::kInputs:
      return At::kInput;
    case At::kOutputs:
      return At::kOutput;
    case At::kInput:
      if (key == "shape") return At::kShape;
      if (key == "data") return At::kData;
      [[fallthrough]];
    case At::kOutput:
      if (key == "parameters") return At::kParameters;
      if (key == "name" || key == "datatype") return std::nullopt;
      break;
    case At::kData:
      return At::kData;
    case At::kShape:
      return std::nullopt;
    case At::kParameters:
    case At::kSkipped:
      break;
  }
  return At::kSkipped;
}

// A list or an object belongs at the member `key` of `at`, so that no other value does.
bool NeedsNested(At at, const std::string& key) {
  if (at == At::kInputs || at == At::kOutputs) return true;
  const std::optional<At> nested = NestedIn(at, key);
  return nested && *nested != At::kSkipped && at != At::kData;
}

bool IsList(At at) {
  return at == At::kInputs || at == At::kOutputs || at == At::kShape || at == At::kData;
}

const char* NameOf(bool object) { return object ? "an object" : "a list"; }

}  // namespace

bool InferJsonReader::boolean(bool value) { return Scalar(InferValue::OfFlag(value)); }
bool InferJsonReader::number_integer(number_integer_t value) {
  return Scalar(InferValue::OfSigned(value));
}
bool InferJsonReader::number_unsigned(number_unsigned_t value) {
  return Scalar(InferValue::OfUnsigned(value));
}
bool InferJsonReader::number_float(number_float_t value, const string_t&) {
  return Scalar(InferValue::OfFloat(value));
}
bool InferJsonReader::string(string_t& value) {
  return Scalar({.kind = Kind::kText, .text = &value});
}

absl::Status InferJsonReader::Read(const MessageSlices& slices, int64_t bytes) {
  JsonSource text(slices, 0, bytes);
  slices_ = &slices;
  text_ = &text;
  status_ = absl::OkStatus();
  frames_.clear();
  std::istream stream(&text);
  const bool whole = nlohmann::json::sax_parse(stream, this);
  text_ = nullptr;
  if (!whole && status_.ok()) status_ = absl::InvalidArgumentError("the body: not valid JSON");
  return status_;
}

void InferJsonReader::ReadAgain(const char* key, int64_t begin, int64_t end) {
  JsonSource text(*slices_, begin, end);
  JsonSource* const outer = std::exchange(text_, &text);
  frames_.back().key = key;
  std::istream stream(&text);
  nlohmann::json::sax_parse(stream, this);
  text_ = outer;
}

bool InferJsonReader::parse_error(std::size_t position, const std::string& /*token*/,
                                  const nlohmann::detail::exception& error) {
  if (text_->has_long_token()) {
    return Note(InvalidField(
        "the body",
        absl::StrCat("strings and numbers of at most ", text_->most_token_bytes(), " bytes"),
        "more"));
  }
  constexpr int kOutOfRange = 406;  // the library's number for a float that is too large
  const std::string at = absl::StrCat(" at byte ", position);
  if (error.id == kOutOfRange) {
    return Note(InvalidField(Place(), "numbers in the range of float64", "a larger number" + at));
  }
  if (absl::StrContains(error.what(), "invalid string: surrogate U+")) {
    return Note(
        InvalidField("the body", "strings of Unicode characters", "half a surrogate pair" + at));
  }
  return Note(InvalidField("the body", "strict JSON in UTF-8", "something else" + at));
}

bool InferJsonReader::Note(const absl::Status& status) {
  if (status_.ok()) status_ = status;
  return status_.ok();
}

bool InferJsonReader::NoteHere(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return Note(status);
  return Note(absl::InvalidArgumentError(absl::StrCat(Place(), ": ", status.message())));
}

// "inputs[1].shape[0]".
std::string InferJsonReader::Place() const {
  std::string place;
  for (const Frame& frame : frames_) {
    if (IsList(frame.at)) {
      if (frame.elements > 0) absl::StrAppend(&place, "[", frame.elements - 1, "]");
    } else if (frame.at != At::kSkipped && !frame.key.empty()) {
      absl::StrAppend(&place, place.empty() ? "" : ".", frame.key);
    }
  }
  return place.empty() ? "the body" : place;
}

bool InferJsonReader::key(string_t& name) {
  Frame& frame = frames_.back();
  if (frame.at == At::kSkipped) return true;
  if (!frame.keys.insert(name).second) {
    frame.key.clear();
    return Note(InvalidField(Place(), "each key once", absl::StrCat(Quote(name), " twice")));
  }
  if (frame.keys.size() > kMostKeys) {
    frame.key.clear();
    return Note(InvalidField(Place(), absl::StrCat("at most ", kMostKeys, " keys"), "more"));
  }
  frame.key = std::move(name);
  return true;
}

bool InferJsonReader::Scalar(const InferValue& value) {
  if (frames_.empty()) return Note(InvalidField("the body", "a JSON object", Describe(value)));
  Frame& frame = frames_.back();
  ++frame.elements;
  if (frame.at == At::kSkipped) return true;
  if (value.kind == Kind::kNull && !IsList(frame.at)) return true;  // as if it were absent
  if (NeedsNested(frame.at, frame.key)) {
    return Note(
        InvalidField(Place(), NameOf(!IsList(*NestedIn(frame.at, frame.key))), Describe(value)));
  }
  return NoteHere(OnScalar(frame.at, value));
}

bool InferJsonReader::Enter(bool object) {
  if (frames_.size() == kMostDepth) {
    return Note(InvalidField(
        "the body", absl::StrCat("at most ", kMostDepth, " nested lists and objects"), "more"));
  }
  if (frames_.empty()) {
    if (!object) return Note(InvalidField("the body", "a JSON object", "a list"));
    frames_.push_back({At::kRoot});
    return true;
  }
  Frame& frame = frames_.back();
  ++frame.elements;
  const std::optional<At> nested = NestedIn(frame.at, frame.key);
  if (!nested) return Note(InvalidField(Place(), "a string or number", NameOf(object)));
  if (*nested != At::kSkipped && IsList(*nested) == object) {
    return Note(InvalidField(Place(), NameOf(!object), NameOf(object)));
  }
  absl::Status status;
  if (frame.at == At::kParameters) status = OnScalar(frame.at, {.kind = Kind::kNested});
  if (status.ok()) {
    frames_.push_back({*nested});
    status = OnEnter(*nested);
  }
  return NoteHere(status);
}

bool InferJsonReader::Leave() {
  const absl::Status status = OnLeave(frames_.back().at);
  frames_.pop_back();
  return status_.ok() && NoteHere(status);
}

}  // namespace attendant::server
