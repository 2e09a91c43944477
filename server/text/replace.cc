#include "server/text/replace.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

constexpr size_t kMaxContent = 64;

// Replaces a text, or runs of spaces, by another text.
class Replace : public Normalizer {
 public:
  // Of runs of whitespace, kLong replaces those of two or more, and lines' ends and tabs by
  // themselves.
  enum class Runs { kNone, kSpaces, kWhitespace, kLong };

  Replace(std::u32string pattern, Runs runs, std::u32string content)
      : pattern_(std::move(pattern)), runs_(runs), content_(std::move(content)) {}

  void Apply(Items& items) const override {
    Items result;
    size_t copied = 0;  // items before this one are in `result`, once there is a match
    for (size_t at = 0; at < items.size();) {
      const size_t size = MatchAt(items, at);
      if (size == 0) {
        ++at;
        continue;
      }
      result.insert(result.end(), items.begin() + copied, items.begin() + at);
      const Item last = items[at + size - 1];
      for (const char32_t code : content_) result.push_back({code, last.begin, last.end});
      copied = at += size;
    }
    if (copied == 0) return;
    result.insert(result.end(), items.begin() + copied, items.end());
    items.swap(result);
  }

  uint32_t growth() const override { return std::max<uint32_t>(1, content_.size()); }

 private:
  size_t MatchAt(const Items& items, size_t at) const {
    if (runs_ != Runs::kNone) {
      size_t end = at;
      while (end < items.size() && IsOfRun(items[end].code)) ++end;
      const bool is_long = end - at >= 2 || runs_ == Runs::kWhitespace ||
                           (runs_ == Runs::kLong && end > at && IsLineOrTab(items[at].code));
      return is_long ? end - at : 0;
    }
    if (items.size() - at < pattern_.size()) return 0;
    for (size_t i = 0; i < pattern_.size(); ++i) {
      if (items[at + i].code != pattern_[i]) return 0;
    }
    return pattern_.size();
  }

  static bool IsLineOrTab(char32_t code) { return code == '\n' || code == '\r' || code == '\t'; }

  bool IsOfRun(char32_t code) const {
    return runs_ == Runs::kSpaces ? code == U' ' : HasFlag(CodeFlags(), code, kWhitespace);
  }

  const std::u32string pattern_;
  const Runs runs_;
  const std::u32string content_;
};

// Replaces each of some characters by a text.
class ReplaceCharacters : public Normalizer {
 public:
  ReplaceCharacters(std::u32string characters, std::u32string content)
      : characters_(std::move(characters)), content_(std::move(content)) {}

  void Apply(Items& items) const override {
    Items result;
    result.reserve(items.size());
    for (const Item& item : items) {
      if (characters_.find(item.code) == std::u32string::npos) {
        result.push_back(item);
        continue;
      }
      for (const char32_t code : content_) result.push_back({code, item.begin, item.end});
    }
    items.swap(result);
  }

  uint32_t growth() const override { return std::max<uint32_t>(1, content_.size()); }

 private:
  const std::u32string characters_;
  const std::u32string content_;
};

// Returns the characters of an expression like "[!\\-.]", which lists them one by one, those with
// a meaning of their own behind a backslash; nothing for any other expression.
std::optional<std::u32string> CharactersOf(absl::string_view regex) {
  if (regex.size() < 3 || !absl::ConsumePrefix(&regex, "[") || !absl::ConsumeSuffix(&regex, "]")) {
    return std::nullopt;
  }
  const std::u32string codes = ToCodes(regex);
  std::u32string characters;
  for (size_t i = 0; i < codes.size(); ++i) {
    const bool is_escaped = codes[i] == U'\\';
    if (is_escaped && ++i == codes.size()) return std::nullopt;
    const char32_t code = codes[i];
    const bool is_plain = code >= 0x80 || !absl::ascii_ispunct(static_cast<unsigned char>(code));
    // A letter behind a backslash is a class; without one, these are syntax.
    const bool is_syntax = absl::StrContains("[]^-&", std::string(1, static_cast<char>(code)));
    if (is_escaped ? is_plain : !is_plain && is_syntax) return std::nullopt;
    characters.push_back(code);
  }
  return characters;
}

}  // namespace

absl::StatusOr<std::u32string> LoadContent(const Fields& fields, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::string content, fields.String(key));
  if (content.size() > kMaxContent) {
    return Unexpected(fields.PathOf(key), absl::StrCat("at most ", kMaxContent, " bytes"),
                      absl::StrCat(content.size()));
  }
  return ToCodes(content);
}

absl::StatusOr<std::unique_ptr<Normalizer>> LoadReplace(const Fields& fields) {
  ASSIGN_OR_RETURN(std::u32string content, LoadContent(fields, "content"));
  ASSIGN_OR_RETURN(const Fields pattern, fields.Object("pattern"));
  if (pattern.Find("Regex").has_value()) {
    ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
    constexpr std::pair<absl::string_view, Replace::Runs> kKnown[] = {
        {" {2,}", Replace::Runs::kSpaces},
        {"\\s+", Replace::Runs::kWhitespace},
        {"\\s{2,}|[\\n\\r\\t]", Replace::Runs::kLong}};
    for (const auto& [known, runs] : kKnown) {
      if (known == regex) return std::make_unique<Replace>(U"", runs, std::move(content));
    }
    if (std::optional<std::u32string> characters = CharactersOf(regex)) {
      return std::make_unique<ReplaceCharacters>(*std::move(characters), std::move(content));
    }
    return Unsupported(pattern.PathOf("Regex"), pattern.Find("Regex")->Describe(),
                       "a String, \" {2,}\", \"\\\\s+\", \"\\\\s{2,}|[\\\\n\\\\r\\\\t]\" or "
                       "single characters in brackets");
  }
  ASSIGN_OR_RETURN(std::u32string text, LoadContent(pattern, "String"));
  if (text.empty()) return Unexpected(pattern.PathOf("String"), "a text", "\"\"");
  return std::make_unique<Replace>(std::move(text), Replace::Runs::kNone, std::move(content));
}

}  // namespace attendant::text
