#include "server/text/split_pattern.h"

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

void Add(size_t first, size_t last, bool is_match, std::vector<Match>& matches) {
  if (first == last) return;
  matches.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(last), is_match});
}

constexpr size_t kUnlimited = SIZE_MAX;

struct IsAnyRun {
  bool operator()(ItemSpan) const { return true; }
};

// Runs of at most some characters that a predicate holds for, if another one holds for the run.
template <typename Holds, typename IsMatch = IsAnyRun>
SplitPattern Runs(Holds holds, size_t most, IsMatch is_match = {}) {
  return [holds = std::move(holds), most, is_match](ItemSpan text, std::vector<Match>& matches) {
    size_t rest = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && end - at < most && holds(text[end].code)) ++end;
      if (end > at && is_match(text.subspan(at, end - at))) {
        Add(rest, at, false, matches);
        Add(at, end, true, matches);
        rest = end;
      }
      at = std::max(end, at + 1);
    }
    if (rest > 0) Add(rest, text.size(), false, matches);
  };
}

template <typename IsMatch = IsAnyRun>
SplitPattern FlaggedRuns(uint16_t any_flag, size_t most, IsMatch is_match = {}) {
  return Runs(
      [flags = CodeFlags(), any_flag](char32_t code) { return HasFlag(flags, code, any_flag); },
      most, is_match);
}

struct IsLong {
  bool operator()(ItemSpan run) const { return run.size() >= 2; }
};

struct IsLongOrLineOrTab {
  bool operator()(ItemSpan run) const {
    const char32_t first = run[0].code;
    return run.size() >= 2 || first == '\n' || first == '\r' || first == '\t';
  }
};

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

// Returns a known regular expression; null for others.
SplitPattern KnownPattern(absl::string_view regex) {
  if (SplitPattern words = KnownWords(regex)) return words;
  if (regex == "\\s") return FlaggedCharacters(kWhitespace);
  if (regex == "\\s+") return FlaggedRuns(kWhitespace, kUnlimited);
  if (regex == "\\s{2,}|[\\n\\r\\t]") {
    return FlaggedRuns(kWhitespace, kUnlimited, IsLongOrLineOrTab());
  }
  if (regex == " {2,}") {
    return Runs([](char32_t code) { return code == ' '; }, kUnlimited, IsLong());
  }
  if (regex == "\\p{N}") return FlaggedCharacters(kNumber);
  if (regex == "\\p{L}") return FlaggedCharacters(kLetter);
  if (regex == "\\p{N}{1,3}") return FlaggedRuns(kNumber, 3);
  if (regex == "[一-龥぀-ゟ゠-ヿ]+") {
    return Runs(
        [](char32_t code) {
          return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
        },
        kUnlimited);
  }
  std::optional<std::u32string> characters = CharactersOf(regex);
  if (!characters.has_value()) return nullptr;
  return Runs([all = *std::move(characters)](char32_t code) { return all.find(code) != all.npos; },
              1);
}

}  // namespace

SplitPattern FlaggedCharacters(uint16_t any_flag) { return FlaggedRuns(any_flag, 1); }

SplitPattern WordsAndSymbols() {
  return [flags = CodeFlags()](ItemSpan text, std::vector<Match>& matches) {
    const auto kind_at = [&](size_t i) -> uint16_t {
      const uint16_t own = flags[text[i].code];
      return (own & kWord) != 0 ? kWord : own & kWhitespace;
    };
    for (size_t first = 0, last; first < text.size(); first = last) {
      const uint16_t kind = kind_at(first);
      for (last = first + 1; last < text.size() && kind_at(last) == kind;) ++last;
      Add(first, last, kind != kWhitespace, matches);
    }
  };
}

SplitPattern RunsOf(size_t length) {
  return Runs([](char32_t) { return true; }, length);
}

SplitPattern Literal(std::u32string literal) {
  return [literal = std::move(literal)](ItemSpan text, std::vector<Match>& matches) {
    const auto equals = [](const Item& item, char32_t code) { return item.code == code; };
    for (size_t at = 0; at < text.size();) {
      const auto found =
          std::search(text.begin() + at, text.end(), literal.begin(), literal.end(), equals);
      const size_t first = found - text.begin();
      if (at == 0 && first == text.size()) return;
      Add(at, first, false, matches);
      at = std::min(first + literal.size(), text.size());
      Add(first, at, true, matches);
    }
  };
}

absl::StatusOr<SplitPattern> LoadPattern(const Fields& fields) {
  ASSIGN_OR_RETURN(const Fields pattern, fields.Object("pattern"));
  if (pattern.Find("Regex").has_value()) {
    ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
    if (SplitPattern known = KnownPattern(regex)) return known;
    return Unsupported(
        pattern.PathOf("Regex"), absl::StrCat("\"", regex, "\""),
        "a String, the pattern of GPT-2, GPT-4o, Llama 3, Qwen, DeepSeek, Tekken or CLIP, "
        "\" {2,}\", \"\\\\s+\", \"\\\\s{2,}|[\\\\n\\\\r\\\\t]\" or single characters in brackets");
  }
  ASSIGN_OR_RETURN(const std::string text, pattern.String("String"));
  if (text.empty() || text.size() > 64) {
    return Unexpected(pattern.PathOf("String"), "1..64 bytes", absl::StrCat(text.size()));
  }
  return Literal(ToCodes(text));
}

void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches) {
  if (behavior == SplitBehavior::kRemoved) {
    matches.erase(std::remove_if(matches.begin(), matches.end(),
                                 [](const Match& match) { return match.is_match; }),
                  matches.end());
    return;
  }
  if (behavior == SplitBehavior::kIsolated) return;
  // From the front, or for the next from the back: each part is either merged with the one before.
  const bool reverse = behavior == SplitBehavior::kMergedWithNext;
  if (reverse) std::reverse(matches.begin(), matches.end());
  size_t kept = 0;
  bool previous = false;
  for (const Match match : matches) {
    const bool merges = behavior == SplitBehavior::kContiguous ? match.is_match == previous
                                                               : match.is_match && !previous;
    previous = match.is_match;
    if (merges && kept > 0) {
      Match& into = matches[kept - 1];
      into = {std::min(into.first, match.first), std::max(into.last, match.last), false};
    } else {
      matches[kept++] = match;
    }
  }
  matches.resize(kept);
  if (reverse) std::reverse(matches.begin(), matches.end());
}

}  // namespace attendant::text
