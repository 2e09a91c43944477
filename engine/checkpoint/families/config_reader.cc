#include "engine/checkpoint/families/config_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

std::optional<int64_t> IntegerWithin(const Json& value, IntegerRange range) {
  const std::optional<int64_t> count = AsCount(value);
  return count && *count >= range.lowest && *count <= range.highest ? count : std::nullopt;
}

}  // namespace

ConfigReader::ConfigReader(const Json& document, Problems& problems)
    : document_(document), problems_(problems) {
  if (!document.is_object()) {
    problems.Add("expected an object; got ", Describe(document));
  }
}

const Json* ConfigReader::FindPresent(const Keys& keys) const {
  named_.insert(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const auto value = document_.find(key);
    if (document_.is_object() && value != document_.end() && !value->is_null()) return &*value;
  }
  return nullptr;
}

void ConfigReader::Mismatch(const Keys& keys, const std::string& expected,
                            const std::string& found) {
  problems_.Add(absl::StrJoin(keys, " or "), ": expected ", expected, "; got ", found);
}

const Json* ConfigReader::Find(const Keys& keys, const std::string& expected, bool optional) {
  const Json* found = FindPresent(keys);
  if (found == nullptr && !optional) {
    Refuse(absl::StrJoin(keys, " or "), ": missing; expected ", expected);
  }
  for (const std::string& key : keys) {
    const Json* other = FindPresent({key});
    if (other != nullptr && *other != *found) {
      Mismatch(keys, "one value", absl::StrCat(Describe(*found), " and ", Describe(*other)));
    }
  }
  return found;
}

Json ConfigReader::List(const Keys& keys, const std::string& expected, int64_t most) {
  const Json* found = Find(keys, expected, /*optional=*/true);
  if (found == nullptr) return Json::array();
  if (found->is_array() && static_cast<int64_t>(found->size()) <= most) return *found;
  Mismatch(keys, expected,
           found->is_array() ? absl::StrCat(found->size(), " elements") : Describe(*found));
  return Json::array();
}

int64_t ConfigReader::Integer(const Keys& keys, IntegerRange range,
                              std::optional<int64_t> fallback) {
  const std::string expected = absl::StrCat("an integer in ", range.lowest, "..", range.highest);
  const Json* found = Find(keys, expected, fallback.has_value());
  if (found == nullptr) return fallback.value_or(range.lowest);
  if (const std::optional<int64_t> value = IntegerWithin(*found, range)) return *value;
  Mismatch(keys, expected, Describe(*found));
  return range.lowest;
}

float ConfigReader::Number(const Keys& keys, float highest, std::optional<float> fallback) {
  const std::string expected = absl::StrCat("a number in 0..", highest);
  const Json* found = Find(keys, expected, fallback.has_value());
  if (found == nullptr) return fallback.value_or(0.0f);
  if (found->is_number()) {
    const auto value = static_cast<float>(found->get<double>());
    if (value >= 0 && value <= highest) return value;
  }
  Mismatch(keys, expected, Describe(*found));
  return 0;
}

bool ConfigReader::Boolean(const Keys& keys, std::optional<bool> fallback) {
  const Json* found = Find(keys, "true or false", fallback.has_value());
  if (found == nullptr) return fallback.value_or(false);
  if (found->is_boolean()) return found->get<bool>();
  Mismatch(keys, "true or false", Describe(*found));
  return false;
}

std::string ConfigReader::Text(const Keys& keys, std::optional<std::string> fallback) {
  const Json* found = Find(keys, "a string", fallback.has_value());
  if (found == nullptr) return fallback.value_or("");
  if (found->is_string()) return found->get<std::string>();
  Mismatch(keys, "a string", Describe(*found));
  return "";
}

std::vector<std::string> ConfigReader::Words(const Keys& keys) {
  const Json* found = Find(keys, "words", /*optional=*/true);
  std::vector<std::string> words;
  if (found == nullptr) return words;
  if (found->is_string()) {
    return absl::StrSplit(found->get<std::string>(), absl::ByAnyChar("| "), absl::SkipEmpty());
  }
  bool fits = found->is_array();
  for (const Json& word : fits ? *found : Json::array()) {
    fits = fits && word.is_string();
    if (fits) words.push_back(word.get<std::string>());
  }
  if (!fits) Mismatch(keys, "words", Describe(*found));
  return words;
}

std::vector<int64_t> ConfigReader::Integers(const Keys& keys, IntegerRange range, int64_t most) {
  const std::string expected = absl::StrCat("a list of up to ", most, " different integers in ",
                                            range.lowest, "..", range.highest);
  std::set<int64_t> seen;
  for (const Json& element : List(keys, expected, most)) {
    const std::optional<int64_t> value = IntegerWithin(element, range);
    if (value && seen.insert(*value).second) continue;
    Mismatch(keys, expected, absl::StrCat(Describe(element), value ? " twice" : " in it"));
    return {};
  }
  return {seen.begin(), seen.end()};
}

std::vector<IntegerPair> ConfigReader::IntegerPairs(const Keys& keys, IntegerRange range,
                                                    int64_t most) {
  const std::string expected =
      absl::StrCat("a list of up to ", most, " different pairs of integers in ", range.lowest, "..",
                   range.highest);
  std::set<IntegerPair> seen;
  for (const Json& element : List(keys, expected, most)) {
    const bool is_pair = element.is_array() && element.size() == 2;
    const auto first = is_pair ? IntegerWithin(element[0], range) : std::nullopt;
    const auto second = is_pair ? IntegerWithin(element[1], range) : std::nullopt;
    if (first && second && seen.insert({*first, *second}).second) continue;
    const std::string found =
        is_pair ? absl::StrCat("[", Describe(element[0]), ", ", Describe(element[1]), "]")
                : Describe(element);
    Mismatch(keys, expected, absl::StrCat(found, first && second ? " twice" : " in it"));
    return {};
  }
  return {seen.begin(), seen.end()};
}

const Json* ConfigReader::Object(const Keys& keys) {
  const Json* found = Find(keys, "an object", /*optional=*/true);
  if (found == nullptr || found->is_object()) return found;
  Mismatch(keys, "an object", Describe(*found));
  return nullptr;
}

int64_t ConfigReader::IntegerOrNone(const Keys& keys, IntegerRange range) {
  const Json* found = FindPresent(keys);
  if (found == nullptr || (found->is_number_integer() && *found < 0)) return -1;
  return Integer(keys, range);
}

int ConfigReader::ChooseRow(const Keys& keys, const std::vector<std::string>& names,
                            bool optional) {
  const std::string expected = absl::StrCat("one of ", absl::StrJoin(names, ", "));
  const Json* found = Find(keys, expected, optional);
  if (found == nullptr) return -1;
  const auto name =
      std::find(names.begin(), names.end(), found->is_string() ? found->get<std::string>() : "");
  if (name != names.end()) return static_cast<int>(name - names.begin());
  Mismatch(keys, expected, Describe(*found));
  return -1;
}

Keys ConfigReader::Unread() const {
  Keys unread;
  if (!document_.is_object()) return unread;
  for (const auto& [key, value] : document_.items()) {
    const bool is_set = !value.empty() && value != false && value != "";  // null is empty
    if (is_set && !named_.contains(key)) unread.push_back(key);
  }
  return unread;
}

void ConfigReader::AllowOnly(const Keys& others) {
  named_.insert(others.begin(), others.end());
  if (!document_.is_object()) return;
  for (const auto& [key, value] : document_.items()) {
    if (named_.contains(key)) continue;
    Refuse("expected only the keys ", absl::StrJoin(named_, ", "), "; got ", Quoted(key));
  }
}

}  // namespace attendant
