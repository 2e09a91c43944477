#include "engine/checkpoint/files/json.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

// Builds the document from the parser's events, which still report both of two equal keys.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return Put(nullptr) != nullptr; }
  bool boolean(bool value) override { return Put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return Put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return Put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return Put(value) != nullptr;
  }
  bool string(string_t& value) override { return Put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return Fail("binary value"); }

  bool start_object(std::size_t) override { return Enter(Json::object()); }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(Json::array()); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) return Fail(absl::StrCat("key ", Quoted(name), " twice"));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not strict JSON in UTF-8 at byte ", position));
  }

  const std::string& problem() const { return problem_; }
  Json& document() { return document_; }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  Json* Put(Json value) {
    if (++values_ > limits_.max_values) {
      Fail(absl::StrCat("expected at most ", limits_.max_values, " values"));
      return nullptr;
    }
    if (open_.empty()) return &(document_ = std::move(value));
    if (open_.back()->is_object()) return &((*open_.back())[key_] = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }

  bool Enter(Json container) {
    if (static_cast<int>(open_.size()) == limits_.max_depth) {
      return Fail(absl::StrCat("nested deeper than ", limits_.max_depth));
    }
    Json* place = Put(std::move(container));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }

  bool Leave() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json document_;
  std::vector<Json*> open_;  // the open objects and arrays, from the root on
  std::string key_;
  int64_t values_ = 0;
  std::string problem_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits& limits,
                               const std::string& file) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return InvalidArgument(file, ": expected at most ", limits.max_bytes, " bytes of JSON; got ",
                           text.size());
  }
  Builder builder(limits);
  if (!Json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
    return InvalidArgument(file, ": refused JSON: ", builder.problem());
  }
  return std::move(builder.document());
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits.max_bytes));
  return ParseJson(text, limits, path);
}

Json ReadObjectOrEmpty(const std::string& path) {
  absl::StatusOr<Json> read = ReadJsonFile(path);
  return read.ok() && read->is_object() ? *std::move(read) : Json::object();
}

std::string TextAt(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string TokenTextAt(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? TextAt(*found, "content")
                                                     : TextAt(object, key);
}

std::optional<int64_t> AsCount(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<uint64_t>();
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string Describe(const Json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.dump();
}

}  // namespace attendant
