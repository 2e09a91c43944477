// A reader for the fields of a JSON config, which checks bounds and collects problems.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/names.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// The names of one field: the standard one first, then others with the same meaning. A field may be
// absent or null if the call gives a fallback. After a problem a reader returns the lowest allowed
// value, so that reading can go on.
using Keys = std::vector<std::string>;

struct IntegerRange {
  int64_t lowest;
  int64_t highest;
};

using IntegerPair = std::pair<int64_t, int64_t>;

// Bounds on the sizes of a model, beyond which a config is refused (rule W13 in
// engine/checkpoint/README.md).
inline constexpr IntegerRange kLayerRange = {1, 1024};
inline constexpr IntegerRange kHiddenSizeRange = {1, 65'536};
inline constexpr IntegerRange kFeedForwardRange = {1, int64_t{1} << 20};
inline constexpr IntegerRange kVocabularyRange = {1, int64_t{1} << 24};
inline constexpr IntegerRange kPositionRange = {1, int64_t{1} << 20};
inline constexpr IntegerRange kTokenTypeRange = {1, int64_t{1} << 16};
inline constexpr IntegerRange kPositionBucketRange = {4, 65'536};
inline constexpr float kHighestFeedForwardRatio = 64.0f;
inline constexpr float kHighestNormEpsilon = 1e-2f;
inline constexpr float kHighestScoreWidth = 65'536.0f;

class ConfigReader {
 public:
  // Both must outlive the reader. It is a problem if the document is not an object.
  ConfigReader(const Json& document, Problems& problems);

  const Json& json() const { return document_; }
  Problems& problems() const { return problems_; }
  // Adds a problem, as Problems::Add does.
  template <class... Parts>
  void Refuse(const Parts&... parts) const {
    problems_.Add(parts...);
  }

  bool Has(const Keys& keys) const { return FindPresent(keys) != nullptr; }
  int64_t Integer(const Keys& keys, IntegerRange range, std::optional<int64_t> fallback = {});
  // The number must be in [0, highest].
  float Number(const Keys& keys, float highest, std::optional<float> fallback = {});
  bool Boolean(const Keys& keys, std::optional<bool> fallback = {});
  std::string Text(const Keys& keys, std::optional<std::string> fallback = {});
  // Reads words from a text with "|" between them, or from a list. Empty if the field is absent.
  std::vector<std::string> Words(const Keys& keys);
  // Reads up to `most` different integers, or pairs of them, in ascending order. Empty if the field
  // is absent.
  std::vector<int64_t> Integers(const Keys& keys, IntegerRange range, int64_t most);
  std::vector<IntegerPair> IntegerPairs(const Keys& keys, IntegerRange range, int64_t most);
  // Returns nullptr if the field is absent. The object lives as long as the document.
  const Json* Object(const Keys& keys);
  // Returns -1 if the field is absent, null or negative: configs write all three for "none".
  int64_t IntegerOrNone(const Keys& keys, IntegerRange range);

  // Returns the value that `table` gives to the text of the field.
  template <typename T>
  T Choice(const Keys& keys, absl::Span<const Named<T>> table, std::optional<T> fallback = {}) {
    std::vector<std::string> names;
    for (const Named<T>& row : table) names.emplace_back(row.name);
    const int row = ChooseRow(keys, names, fallback.has_value());
    return row < 0 && fallback ? *fallback : table[row < 0 ? 0 : row].value;
  }

  // Adds a problem for every key that no call has named so far, and that is not among these.
  void AllowOnly(const Keys& others = {});
  // Returns the keys of the document that no call has named so far and that have a value: one that
  // is none of null, false and empty.
  Keys Unread() const;

 private:
  const Json* FindPresent(const Keys& keys) const;
  const Json* Find(const Keys& keys, const std::string& expected, bool optional);
  // Returns the list if it has up to `most` elements, else an empty one and adds a problem.
  Json List(const Keys& keys, const std::string& expected, int64_t most);
  int ChooseRow(const Keys& keys, const std::vector<std::string>& names, bool optional);
  void Mismatch(const Keys& keys, const std::string& expected, const std::string& found);

  const Json& document_;
  Problems& problems_;
  mutable std::set<std::string> named_;  // by any call
};

// Calls read(config) with a reader of the file, and returns the problems that it collects.
template <class Read>
absl::Status ReadConfig(const std::string& path, const Read& read, bool optional = false) {
  Json json = Json::object();
  if (!optional || PathExists(path)) {
    ASSIGN_OR_RETURN(json, ReadJsonFile(path));
  }
  Problems problems(path);
  ConfigReader config(json, problems);
  read(config);
  return problems.ToStatus();
}

// Likewise, but if the file is absent, reads an empty object.
template <class Read>
absl::Status ReadConfigOrDefaults(const std::string& path, const Read& read) {
  return ReadConfig(path, read, /*optional=*/true);
}

}  // namespace attendant
