#include "server/text/base/json_tree.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::text {

// Receives the parser's events. The parser's own document would take several times as much memory,
// and would round numbers in its own way.
class JsonTreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonTreeBuilder(JsonTree* tree) : tree_(tree) {}

  bool null() override { return Add(JsonValue::Kind::kNull, {}); }
  bool boolean(bool value) override {
    return Add(value ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse, {});
  }
  bool number_integer(number_integer_t value) override {
    return Add(JsonValue::Kind::kNumber, absl::StrCat(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(JsonValue::Kind::kNumber, absl::StrCat(value));
  }
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
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_ = absl::StrCat("expected JSON; got something else at byte ", position);
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  uint32_t Store(absl::string_view text) {
    const uint32_t begin = static_cast<uint32_t>(tree_->text_.size());
    tree_->text_.append(text.data(), text.size());
    return begin;
  }

  bool Add(JsonValue::Kind kind, absl::string_view text) {
    if (tree_->nodes_.size() >= JsonTree::kMaxValues) {
      error_ = absl::StrCat("expected at most ", JsonTree::kMaxValues, " values; got more");
      return false;
    }
    if (!open_.empty()) ++tree_->nodes_[open_.back()].size;
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
    if (open_.size() >= JsonTree::kMaxDepth) {
      error_ = absl::StrCat("expected at most ", JsonTree::kMaxDepth, " nested values; got more");
      return false;
    }
    if (!Add(kind, {})) return false;
    open_.push_back(static_cast<uint32_t>(tree_->nodes_.size()) - 1);
    return true;
  }

  bool Close() {
    tree_->nodes_[open_.back()].next = static_cast<uint32_t>(tree_->nodes_.size());
    open_.pop_back();
    return true;
  }

  JsonTree* const tree_;
  std::vector<uint32_t> open_;
  std::string key_, error_;
};

absl::StatusOr<std::unique_ptr<JsonTree>> JsonTree::Parse(absl::string_view json,
                                                          absl::string_view file) {
  if (json.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": expected at most ", kMaxBytes, " bytes; got ", json.size()));
  }
  auto tree = std::make_unique<JsonTree>();
  JsonTreeBuilder builder(tree.get());
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", builder.error()));
  }
  return tree;
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

std::optional<uint32_t> JsonValue::AsId() const {
  uint32_t id = 0;
  if (kind() != Kind::kNumber || text().front() == '-' || !absl::SimpleAtoi(text(), &id)) {
    return std::nullopt;
  }
  return id;
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
