#include "engine/checkpoint/files/tokenizer_json.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/json.h"

namespace attendant {
namespace {

// Copies of a value recurse as deeply as it is nested. Tokenizers are not loaded if they are
// deeper.
constexpr int kMostDepth = 64;

// The first byte of a value, and the byte after its last one.
using JsonSpan = std::pair<size_t, size_t>;

// Returns the spans of the values of a JSON object, which is known to be valid, by their keys.
std::map<std::string, JsonSpan> FindMembers(const std::string& json) {
  std::map<std::string, JsonSpan> members;
  std::string key;
  int depth = 0;
  size_t begin = 0;  // of a value of the object; 0: no value has begun
  const auto end_value = [&](size_t end) {
    if (begin > 0) members[key] = {begin, end};
    begin = 0;
  };
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const size_t start = i;
    if (c == '"') {
      for (++i; i < json.size() && json[i] != '"'; ++i) i += json[i] == '\\' ? 1 : 0;
      if (depth == 1 && begin == 0) key = json.substr(start + 1, i - start - 1);
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) end_value(i);
    } else if (depth == 1 && c == ',') {
      end_value(i);
    } else if (depth == 1 && c == ':') {
      begin = i + 1;
    }
  }
  return members;
}

void AddId(const Json& id, const Json& text, std::map<std::string, int32_t>& ids) {
  const std::optional<int64_t> number = AsCount(id);
  if (!number || *number > std::numeric_limits<int32_t>::max() || !text.is_string()) return;
  ids.emplace(text.get<std::string>(), static_cast<int32_t>(*number));
}

std::string FirstWord(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  return std::string(text.substr(0, text.find_first_of(" \t\r\n")));
}

}  // namespace

Json ParseTokenizer(const std::string& tokenizer, const std::vector<std::string>& wanted) {
  std::string part;
  const Json::parser_callback_t keeps = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMostDepth) return false;
    if (event != Json::parse_event_t::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1) part = key;
    if (depth == 1) return key == "added_tokens" || key == "model" || key == "truncation";
    if (part != "model") return true;
    if (depth == 2) return key == "vocab" && !wanted.empty();
    return std::find(wanted.begin(), wanted.end(), key) != wanted.end();
  };
  return Json::parse(tokenizer, keeps, /*allow_exceptions=*/false);
}

std::map<std::string, int32_t> ReadTokenIds(const Json& parsed) {
  std::map<std::string, int32_t> ids;
  if (!parsed.is_object()) return ids;
  for (const Json& token : parsed.value("added_tokens", Json::array())) {
    if (token.is_object()) AddId(token.value("id", Json()), token.value("content", Json()), ids);
  }
  const Json& model = parsed.value("model", Json::object());
  const Json vocabulary = model.is_object() ? model.value("vocab", Json()) : Json();
  if (vocabulary.is_object()) {
    for (const auto& [text, id] : vocabulary.items()) AddId(id, text, ids);
  } else if (vocabulary.is_array()) {  // pairs of a text and its score, in the order of the ids
    for (size_t i = 0; i < vocabulary.size(); ++i) {
      if (vocabulary[i].is_array() && !vocabulary[i].empty()) AddId(i, vocabulary[i][0], ids);
    }
  }
  return ids;
}

std::map<std::string, int32_t> ReadTokenIds(const std::string& tokenizer,
                                            const std::vector<std::string>& wanted) {
  return ReadTokenIds(ParseTokenizer(tokenizer, wanted));
}

TextTruncation ReadTruncation(const Json& truncation) {
  if (!truncation.is_object()) return {};
  const std::optional<int64_t> length = AsCount(truncation.value("max_length", Json()));
  const bool is_length = length && *length <= std::numeric_limits<int32_t>::max();
  return {.length = is_length ? *length : 0,
          .is_left = truncation.value("direction", Json()) == "Left"};
}

TextTruncation ReadTruncation(const std::string& tokenizer) {
  const Json parsed = ParseTokenizer(tokenizer);
  return ReadTruncation(parsed.is_object() ? parsed.value("truncation", Json()) : Json());
}

void SetMember(const std::string& key, absl::string_view value, std::string& json) {
  const std::map<std::string, JsonSpan> members = FindMembers(json);
  if (const auto found = members.find(key); found != members.end()) {
    const auto [begin, end] = found->second;
    json.replace(begin, end - begin, std::string(value));
  } else {
    json.insert(json.find('{') + 1, absl::StrCat("\"", key, "\":", value, ","));
  }
}

void MakeSpecial(const std::vector<std::string>& texts, std::string& tokenizer) {
  std::vector<std::string> wanted;
  for (const std::string& text : texts) wanted.insert(wanted.end(), {text, FirstWord(text)});
  const Json parsed = ParseTokenizer(tokenizer, wanted);
  const std::map<std::string, int32_t> ids = ReadTokenIds(parsed);
  if (ids.empty()) return;
  Json added = parsed.value("added_tokens", Json());
  if (added.is_null()) added = Json::array();
  if (!added.is_array()) return;
  const Json before = added;
  for (const std::string& text : texts) {
    auto id = ids.find(text);
    if (id == ids.end()) id = ids.find(FirstWord(text));
    if (id == ids.end() || id->first.empty()) continue;
    auto token = std::find_if(added.begin(), added.end(), [&](const Json& one) {
      return one.is_object() && one.value("content", Json()) == id->first;
    });
    if (token == added.end()) {
      added.push_back({{"id", id->second},
                       {"content", id->first},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false}});
      token = std::prev(added.end());
    }
    (*token)["normalized"] = false;
    (*token)["special"] = true;
  }
  if (added != before) SetMember("added_tokens", added.dump(), tokenizer);
}

}  // namespace attendant
