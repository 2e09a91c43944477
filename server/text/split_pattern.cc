#include "server/text/split_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

void Add(size_t first, size_t last, bool is_match, std::vector<Match>& matches) {
  if (first == last) return;
  matches.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(last), is_match});
}

// Runs of at most some characters that a predicate holds for.
template <typename Holds>
SplitPattern Runs(Holds holds, size_t most) {
  return [holds, most](ItemSpan text, std::vector<Match>& matches) {
    size_t rest = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && end - at < most && holds(text[end].code)) ++end;
      if (end > at) {
        Add(rest, at, false, matches);
        Add(at, end, true, matches);
        rest = end;
      }
      at = std::max(end, at + 1);
    }
    Add(rest, text.size(), false, matches);
  };
}

SplitPattern FlaggedRuns(uint16_t any_flag, size_t most) {
  return Runs(
      [flags = CodeFlags(), any_flag](char32_t code) { return HasFlag(flags, code, any_flag); },
      most);
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
      Add(at, first, false, matches);
      at = std::min(first + literal.size(), text.size());
      Add(first, at, true, matches);
    }
  };
}

absl::StatusOr<SplitPattern> KnownPattern(absl::string_view regex, absl::string_view field) {
  if (SplitPattern words = KnownWords(regex)) return words;
  if (regex == "\\s") return FlaggedCharacters(kWhitespace);
  if (regex == "\\p{N}") return FlaggedCharacters(kNumber);
  if (regex == "\\p{L}") return FlaggedCharacters(kLetter);
  if (regex == "\\p{N}{1,3}") return FlaggedRuns(kNumber, 3);
  if (regex == "[一-龥぀-ゟ゠-ヿ]+") {
    return Runs(
        [](char32_t code) {
          return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
        },
        SIZE_MAX);
  }
  return Unsupported(
      field, absl::StrCat("\"", regex, "\""),
      "a String, or the pattern of GPT-2, GPT-4o, Llama 3, Qwen, DeepSeek, Tekken or CLIP");
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
