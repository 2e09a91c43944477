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

bool IsLineOrTab(char32_t code) { return code == '\n' || code == '\r' || code == '\t'; }

// These return the number of items from `at` on that match.
size_t SpacesAt(const Items& items, size_t at) {
  size_t end = at;
  while (end < items.size() && items[end].code == U' ') ++end;
  return end - at >= 2 ? end - at : 0;
}

size_t WhitespaceAt(const Items& items, size_t at) {
  size_t end = at;
  while (end < items.size() && HasFlag(CodeFlags(), items[end].code, kWhitespace)) ++end;
  return end - at;
}

size_t LongWhitespaceAt(const Items& items, size_t at) {
  const size_t size = WhitespaceAt(items, at);
  return size >= 2 || (size > 0 && IsLineOrTab(items[at].code)) ? size : 0;
}

// Replaces what `match_at` finds.
template <typename MatchAt>
Normalizer Replace(MatchAt match_at, std::u32string content) {
  const auto growth = std::max<uint32_t>(1, content.size());
  return {[match_at = std::move(match_at), content = std::move(content)](Items& items) {
            Items result;
            size_t copied = 0;  // items before this one are in `result`, once there is a match
            for (size_t at = 0; at < items.size();) {
              const size_t size = match_at(items, at);
              if (size == 0) {
                ++at;
                continue;
              }
              result.insert(result.end(), items.begin() + copied, items.begin() + at);
              const Item last = items[at + size - 1];
              for (const char32_t code : content) result.push_back({code, last.begin, last.end});
              copied = at += size;
            }
            if (copied == 0) return;
            result.insert(result.end(), items.begin() + copied, items.end());
            items.swap(result);
          },
          growth};
}

// Returns the characters of an expression like "[!\\-.]", which lists them one by one, with special
// ones escaped by a backslash; nullopt for any other expression.
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
    // A letter after a backslash is a class; without one, these are syntax.
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

absl::StatusOr<Normalizer> LoadReplace(const Fields& fields) {
  ASSIGN_OR_RETURN(std::u32string content, LoadContent(fields, "content"));
  ASSIGN_OR_RETURN(const Fields pattern, fields.Object("pattern"));
  if (pattern.Find("Regex").has_value()) {
    ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
    if (regex == " {2,}") return Replace(SpacesAt, std::move(content));
    if (regex == "\\s+") return Replace(WhitespaceAt, std::move(content));
    if (regex == "\\s{2,}|[\\n\\r\\t]") return Replace(LongWhitespaceAt, std::move(content));
    if (std::optional<std::u32string> characters = CharactersOf(regex)) {
      const auto one_of = [all = *std::move(characters)](const Items& items, size_t at) -> size_t {
        return all.find(items[at].code) == all.npos ? 0 : 1;
      };
      return Replace(one_of, std::move(content));
    }
    return Unsupported(pattern.PathOf("Regex"), pattern.Find("Regex")->Describe(),
                       "a String, \" {2,}\", \"\\\\s+\", \"\\\\s{2,}|[\\\\n\\\\r\\\\t]\" or "
                       "single characters in brackets");
  }
  ASSIGN_OR_RETURN(std::u32string text, LoadContent(pattern, "String"));
  if (text.empty()) return Unexpected(pattern.PathOf("String"), "a string", "\"\"");
  const auto text_at = [text = std::move(text)](const Items& items, size_t at) -> size_t {
    const bool matches =
        items.size() - at >= text.size() &&
        std::equal(text.begin(), text.end(), items.begin() + at,
                   [](char32_t code, const Item& item) { return item.code == code; });
    return matches ? text.size() : 0;
  };
  return Replace(text_at, std::move(content));
}

}  // namespace attendant::text
