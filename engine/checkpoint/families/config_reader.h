// Reads the fields of a JSON config, with bounds, and collects what is wrong with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// Names of one field: the standard one first, then others that mean the same. With a fallback a
// field may be absent or null. After a problem the value is the lowest allowed one, so that reading
// goes on.
using Keys = std::vector<std::string>;

struct IntegerRange {
  int64_t lowest;
  int64_t highest;
};

using IntegerPair = std::pair<int64_t, int64_t>;

template <typename T>
struct Named {
  const char* name;
  T value;
};

class ConfigReader {
 public:
  // Both must outlive the reader. A document that is no object is a problem.
  ConfigReader(const Json& document, Problems& problems);

  bool Has(const Keys& keys) const { return FindPresent(keys) != nullptr; }
  int64_t Integer(const Keys& keys, IntegerRange range, std::optional<int64_t> fallback = {});
  float Number(const Keys& keys, float highest, std::optional<float> fallback = {});  // from 0 on
  bool Boolean(const Keys& keys, std::optional<bool> fallback = {});
  std::string Text(const Keys& keys, std::optional<std::string> fallback = {});
  // A text of words with "|" between them, or a list of words; empty if absent.
  std::vector<std::string> Words(const Keys& keys);
  // Up to `most` integers, or pairs of them, no two the same; ascending, and empty if absent.
  std::vector<int64_t> Integers(const Keys& keys, IntegerRange range, int64_t most);
  std::vector<IntegerPair> IntegerPairs(const Keys& keys, IntegerRange range, int64_t most);
  const Json* Object(const Keys& keys);  // nullptr: absent; lives as long as the document
  // -1 for absent, null and any negative number, which mean that there is none.
  int64_t IntegerOrNone(const Keys& keys, IntegerRange range);

  // The value that `table` gives to the text of the field.
  template <typename T>
  T Choice(const Keys& keys, absl::Span<const Named<T>> table, std::optional<T> fallback = {}) {
    std::vector<std::string> names;
    for (const Named<T>& row : table) names.emplace_back(row.name);
    const int row = ChooseRow(keys, names, fallback.has_value());
    return row < 0 && fallback ? *fallback : table[row < 0 ? 0 : row].value;
  }

  // Any key beyond these is a problem.
  void AllowOnly(const Keys& keys);

 private:
  const Json* FindPresent(const Keys& keys) const;
  const Json* Find(const Keys& keys, const std::string& expected, bool optional);
  // What is there if it is a list of up to `most`, else an empty one.
  Json List(const Keys& keys, const std::string& expected, int64_t most);
  int ChooseRow(const Keys& keys, const std::vector<std::string>& names, bool optional);
  void Mismatch(const Keys& keys, const std::string& expected, const std::string& found);

  const Json& document_;
  Problems& problems_;
};

}  // namespace attendant
