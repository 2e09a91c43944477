#include "server/text/base/json_tree.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::text {
namespace {

constexpr size_t kMostOfKey = 40;  // bytes, in a path

}  // namespace

// Receives the parser's events. The parser's own document would take several times as much memory,
// and would round numbers in its own way.
class JsonTreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonTreeBuilder(const JsonLimits& limits, JsonTree* tree, JsonFault* fault)
      : limits_(limits), tree_(tree), fault_(fault) {}

  bool null() override { return Add(JsonValue::Kind::kNull, {}); }
  bool boolean(bool value) override {
    return Add(value ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse, {});
  }
  bool number_integer(number_integer_t value) override { return AddInteger(value); }
  bool number_unsigned(number_unsigned_t value) override { return AddInteger(value); }
  bool number_float(number_float_t, const string_t& written) override {
    return Add(JsonValue::Kind::kNumber, written);
  }
  bool string(string_t& value) override { return Add(JsonValue::Kind::kString, value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // the library's number for a float that is too large
    if (error.id == kOutOfRange) return Fail(JsonFault::Kind::kNumber, position, token);
    if (absl::StrContains(error.what(), "invalid string: surrogate U+")) {
      return Fail(JsonFault::Kind::kSurrogate, position);
    }
    const bool is_utf8 = !absl::StrContains(error.what(), "invalid string: ill-formed UTF-8");
    return Fail(is_utf8 ? JsonFault::Kind::kSyntax : JsonFault::Kind::kUtf8, position);
  }

 private:
  // An array or object whose end has not been read.
  struct OpenValue {
    uint32_t node;
    bool has_only_ids;  // an array, which may be empty
  };

  uint32_t Store(absl::string_view text) {
    const uint32_t begin = static_cast<uint32_t>(tree_->text_.size());
    tree_->text_.append(text.data(), text.size());
    return begin;
  }

  template <typename Integer>
  bool AddInteger(Integer value) {
    return Add(JsonValue::Kind::kNumber, absl::StrCat(value), std::in_range<int32_t>(value));
  }

  // Counts a value of the innermost array or object. Returns false beyond the limit.
  bool Count(bool is_id) {
    size_t count = 1;
    if (!limits_.counts_ids && !open_.empty() && open_.back().has_only_ids) {
      if (is_id) return true;
      open_.back().has_only_ids = false;
      count += tree_->nodes_[open_.back().node].size;
    }
    if (count > limits_.values - values_) return false;
    values_ += count;
    return true;
  }

  bool Add(JsonValue::Kind kind, absl::string_view text, bool is_id = false) {
    if (!Count(is_id)) return Fail(JsonFault::Kind::kValues, 0);
    if (!open_.empty()) ++tree_->nodes_[open_.back().node].size;
    JsonTree::Node node = {};
    node.key_begin = Store(key_);
    node.key_size = static_cast<uint32_t>(key_.size());
    key_.clear();
    node.text_begin = Store(text);
    node.size = static_cast<uint32_t>(text.size());
    node.kind = kind;
    tree_->nodes_.push_back(node);
    tree_->nodes_.back().next = static_cast<uint32_t>(tree_->nodes_.size());
    return true;
  }

  bool Open(JsonValue::Kind kind) {
    if (open_.size() == limits_.depth) return Fail(JsonFault::Kind::kDepth, 0);
    if (!Add(kind, {})) return false;
    open_.push_back({static_cast<uint32_t>(tree_->nodes_.size()) - 1,
                     /*has_only_ids=*/kind == JsonValue::Kind::kArray});
    return true;
  }

  bool Close() {
    tree_->nodes_[open_.back().node].next = static_cast<uint32_t>(tree_->nodes_.size());
    open_.pop_back();
    return true;
  }

  bool Fail(JsonFault::Kind kind, size_t byte, const std::string& got = "") {
    *fault_ = {kind, byte, Path(), got};
    return false;
  }

  std::string Path() const {
    std::string path;
    for (size_t i = 0; i < open_.size(); ++i) {
      const JsonTree::Node& node = tree_->nodes_[open_[i].node];
      const bool is_innermost = i + 1 == open_.size();
      if (node.kind == JsonValue::Kind::kArray) {
        absl::StrAppend(&path, "[", is_innermost ? node.size : node.size - 1, "]");
        continue;
      }
      absl::string_view key = key_;
      if (!is_innermost) {
        const JsonTree::Node& inner = tree_->nodes_[open_[i + 1].node];
        key = absl::string_view(tree_->text_).substr(inner.key_begin, inner.key_size);
      }
      if (!key.empty()) {
        absl::StrAppend(&path, path.empty() ? "" : ".", key.substr(0, kMostOfKey));
      }
    }
    return path;
  }

  const JsonLimits limits_;
  JsonTree* const tree_;
  JsonFault* const fault_;
  std::vector<OpenValue> open_;
  std::string key_;
  size_t values_ = 0;
};

std::unique_ptr<JsonTree> JsonTree::Parse(absl::string_view json, const JsonLimits& limits,
                                          JsonFault& fault) {
  auto tree = std::make_unique<JsonTree>();
  tree->text_.reserve(json.size());
  JsonTreeBuilder builder(limits, tree.get(), &fault);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) return nullptr;
  return tree;
}

absl::StatusOr<std::unique_ptr<JsonTree>> JsonTree::Parse(absl::string_view json,
                                                          absl::string_view file) {
  const auto refuse = [&](absl::string_view expected, absl::string_view got) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": expected ", expected, "; got ", got));
  };
  if (json.size() > kMaxBytes) {
    return refuse(absl::StrCat("at most ", kMaxBytes, " bytes"), absl::StrCat(json.size()));
  }
  const JsonLimits limits;
  JsonFault fault;
  if (auto tree = Parse(json, limits, fault)) return tree;
  switch (fault.kind) {
    case JsonFault::Kind::kValues:
      return refuse(absl::StrCat("at most ", limits.values, " values"), "more");
    case JsonFault::Kind::kDepth:
      return refuse(absl::StrCat("at most ", limits.depth, " nested values"), "more");
    default:
      return refuse("JSON", absl::StrCat("something else at byte ", fault.byte));
  }
}

JsonValue::Kind JsonValue::kind() const { return tree_->nodes_[node_].kind; }

absl::string_view JsonValue::text() const {
  const JsonTree::Node& node = tree_->nodes_[node_];
  if (node.kind != Kind::kString && node.kind != Kind::kNumber) return {};
  return absl::string_view(tree_->text_).substr(node.text_begin, node.size);
}

std::optional<bool> JsonValue::AsBool() const {
  if (kind() == Kind::kTrue) return true;
  if (kind() == Kind::kFalse) return false;
  return std::nullopt;
}

std::optional<int64_t> JsonValue::AsInteger() const {
  int64_t integer = 0;
  if (kind() != Kind::kNumber || !absl::SimpleAtoi(text(), &integer)) return std::nullopt;
  return integer;
}

std::optional<uint32_t> JsonValue::AsId() const {
  const std::optional<int64_t> integer = AsInteger();
  if (!integer || *integer < 0 || *integer > 0xFFFFFFFF) return std::nullopt;
  return static_cast<uint32_t>(*integer);
}

std::vector<JsonValue> JsonValue::Elements() const {
  std::vector<JsonValue> elements;
  elements.reserve(size());
  ForEach([&](absl::string_view, JsonValue value) { elements.push_back(value); });
  return elements;
}

std::vector<absl::string_view> JsonValue::Keys() const {
  std::vector<absl::string_view> keys;
  ForEach([&](absl::string_view key, JsonValue) { keys.push_back(key); });
  return keys;
}

std::optional<JsonValue> JsonValue::First() const {
  if (!is_array() || size() == 0) return std::nullopt;
  return JsonValue(tree_, node_ + 1);
}

size_t JsonValue::size() const { return is_array() || is_object() ? tree_->nodes_[node_].size : 0; }

std::optional<JsonValue> JsonValue::Find(absl::string_view key) const {
  std::optional<JsonValue> found;
  if (!is_object()) return found;
  ForEach([&](absl::string_view other, JsonValue value) {
    if (other == key) found = value;
  });
  return found;
}

std::string JsonValue::Describe() const {
  switch (kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kFalse:
      return "false";
    case Kind::kTrue:
      return "true";
    case Kind::kNumber:
      return std::string(text());
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
    case Kind::kString:
      break;
  }
  if (text().size() <= 100) return absl::StrCat("\"", absl::Utf8SafeCEscape(text()), "\"");
  return absl::StrCat("a string of ", text().size(), " bytes");
}

bool Contains(JsonValue whole, JsonValue part, bool absent_agrees) {
  if (part.kind() != whole.kind() || part.text() != whole.text()) return false;
  if (part.is_array() && part.size() != whole.size()) return false;
  const std::vector<JsonValue> elements = whole.Elements();
  bool contains = true;
  size_t next = 0;
  part.ForEach([&](absl::string_view key, JsonValue value) {
    const std::optional<JsonValue> own = part.is_array() ? elements[next++] : whole.Find(key);
    if (absent_agrees && (!own || own->is_null() || value.is_null())) return;
    contains = contains && own && Contains(*own, value, absent_agrees);
  });
  return contains;
}

std::string QuoteJson(absl::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace attendant::text
