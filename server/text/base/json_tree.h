// JsonTree, a JSON document of up to millions of values, in a compact form for vocabularies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::text {

// Returns the text as a quoted JSON string, replacing invalid UTF-8 by U+FFFD.
std::string QuoteJson(absl::string_view text);

class JsonTree;

// A value in a JsonTree, which must outlive it. Copyable; thread-safe.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

  JsonValue(const JsonTree* tree, uint32_t node) : tree_(tree), node_(node) {}

  Kind kind() const;
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_string() const { return kind() == Kind::kString; }

  // Returns the characters of a string, or a number as written.
  absl::string_view text() const;
  // Returns nullopt unless the value is true or false.
  std::optional<bool> AsBool() const;
  // Returns nullopt unless the value is an integer of 64 bits.
  std::optional<int64_t> AsInteger() const;
  // Returns nullopt unless the value is an integer in 0..2^32-1.
  std::optional<uint32_t> AsId() const;

  // Returns the elements of an array, or the values of an object.
  std::vector<JsonValue> Elements() const;
  // Returns the keys of an object, in the order of Elements().
  std::vector<absl::string_view> Keys() const;
  // Returns the first element of an array; nullopt if it is empty or the value is not an array.
  std::optional<JsonValue> First() const;
  size_t size() const;
  // Returns the value of the last `key` of an object, like serde and Python; nullopt if there is
  // none or the value is not an object.
  std::optional<JsonValue> Find(absl::string_view key) const;

  // Describes the value for an error: `"a"`, `3`, `an object`; long strings are shortened.
  std::string Describe() const;

  // Calls `visit(key, value)` for each element; the key is empty in arrays.
  template <typename Visit>
  void ForEach(Visit visit) const;

 private:
  const JsonTree* tree_;
  uint32_t node_;
};

struct JsonLimits {
  size_t values = size_t{1} << 24;
  size_t depth = 64;
  // If false, 32-bit integers in an array of nothing else do not count as values.
  bool counts_ids = true;
};

// The first error in a text.
struct JsonFault {
  enum class Kind { kSyntax, kUtf8, kSurrogate, kNumber, kValues, kDepth };
  Kind kind = Kind::kSyntax;
  size_t byte = 0;   // the place after which the text is wrong
  std::string path;  // of the value, such as "inputs[1].text"; "" if it is the whole text
  std::string got;   // kNumber
};

// Immutable after Parse; thread-safe.
class JsonTree {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 28;

  // Parses strict UTF-8 JSON. Returns INVALID_ARGUMENT with `file` and the byte.
  static absl::StatusOr<std::unique_ptr<JsonTree>> Parse(absl::string_view json,
                                                         absl::string_view file);
  // Returns null after an error.
  static std::unique_ptr<JsonTree> Parse(absl::string_view json, const JsonLimits& limits,
                                         JsonFault& fault);

  JsonValue root() const { return JsonValue(this, 0); }

 private:
  friend class JsonValue;
  friend class JsonTreeBuilder;

  struct Node {
    uint32_t key_begin, key_size;
    uint32_t text_begin;  // in text_; strings and numbers
    uint32_t size;        // of the text, or the number of elements
    uint32_t next;        // the next node outside this one
    JsonValue::Kind kind;
  };

  std::vector<Node> nodes_;
  std::string text_;
};

// Returns whether `whole` has the values of `part`; its objects may have further keys. With
// `absent_agrees`, a key that `whole` lacks or that is null agrees with any value.
bool Contains(JsonValue whole, JsonValue part, bool absent_agrees);

template <typename Visit>
void JsonValue::ForEach(Visit visit) const {
  const JsonTree::Node& node = tree_->nodes_[node_];
  if (node.kind != Kind::kArray && node.kind != Kind::kObject) return;
  for (uint32_t i = node_ + 1; i < node.next; i = tree_->nodes_[i].next) {
    const JsonTree::Node& child = tree_->nodes_[i];
    visit(absl::string_view(tree_->text_).substr(child.key_begin, child.key_size),
          JsonValue(tree_, i));
  }
}

}  // namespace attendant::text
