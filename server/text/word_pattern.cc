#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "server/text/base/unicode.h"
#include "server/text/split_pattern.h"

namespace attendant::text {
namespace {

bool IsLineEnd(char32_t code) { return code == '\r' || code == '\n'; }
bool IsAsciiLetter(char32_t code) {
  return code < 0x80 && (IsUpperLetter(code) || IsLowerLetter(code));
}

// Categories of characters, with the table looked up once.
struct Categories {
  const uint16_t* const flags = CodeFlags();

  auto Has(uint16_t any) const {
    return [table = flags, any](char32_t code) { return HasFlag(table, code, any); };
  }
  bool IsLetter(char32_t code) const { return HasFlag(flags, code, kLetter); }
  bool IsLetterOrMark(char32_t code) const { return IsLetter(code) || IsPatternMark(code); }
  auto LettersOrMarks() const {
    return [this](char32_t code) { return IsLetterOrMark(code); };
  }
};

// Returns the number of items from `at` on that a predicate holds for, at most `most`.
template <typename Predicate>
size_t Run(ItemSpan text, size_t at, Predicate predicate, size_t most = SIZE_MAX) {
  size_t end = at;
  while (end < text.size() && end - at < most && predicate(text[end].code)) ++end;
  return end - at;
}

// Returns the length of a run of whitespace, without the last character if a word follows, which
// then begins with it; or up to the end of its last line.
size_t Spaces(ItemSpan text, const Categories& categories, bool ends_with_line) {
  const size_t run = Run(text, 0, categories.Has(kWhitespace));
  for (size_t end = run; ends_with_line && end > 0; --end) {
    if (IsLineEnd(text[end - 1].code)) return end;
  }
  return run > 1 && run < text.size() ? run - 1 : run;
}

bool StartsWith(ItemSpan text, absl::string_view start, bool ignores_case) {
  if (text.size() < start.size()) return false;
  for (size_t i = 0; i < start.size(); ++i) {
    char32_t code = text[i].code;
    // U+017F is a long s.
    if (ignores_case) code = code == 0x17F ? U's' : code < 0x80 ? LowerCase(code) : code;
    if (code != static_cast<unsigned char>(start[i])) return false;
  }
  return true;
}

// A pattern that looks for a match at one place after the other. `match_at` returns the number of
// items at the front that match, 0 if none do, and looks at no more items than a few times as many
// as it returns, in all.
template <typename MatchAt>
SplitPattern Scan(MatchAt match_at) {
  return [match_at](ItemSpan text, std::vector<Match>& matches) {
    const Categories categories;
    for (size_t at = 0; at < text.size();) {
      size_t size = match_at(text.subspan(at), categories);
      const bool is_match = size != 0;
      if (!is_match) size = 1;
      const auto first = static_cast<uint32_t>(at), last = static_cast<uint32_t>(at + size);
      if (is_match || matches.empty() || matches.back().is_match || matches.back().last != first) {
        matches.push_back({first, last, is_match});
      } else {
        ++matches.back().last;
      }
      at += size;
    }
  };
}

// How the patterns of GPT-2 and its successors differ, as read from their expressions.
struct WordRules {
  explicit WordRules(absl::string_view regex) {
    const auto has = [&](absl::string_view part) { return absl::StrContains(regex, part); };
    has_ends = has("'s|'t");
    ignores_case = has("(?i:'s");
    ends_follow_words = has("'d)?");
    takes_any_before = has(R"([^\r\n\p{L}\p{N}]?)");
    takes_space = has(R"( ?\p{N}+)");
    most_digits = takes_space ? SIZE_MAX : has(R"(\p{N}{1,3})") ? 3 : 1;
    takes_slashes = has(R"([\r\n/]*)");
    takes_line_ends = takes_slashes || has(R"([\r\n]*)");
    splits_at_space = !has(R"(\s+(?!\S))");
    names_texts_ends = has("startoftext");
    has_marks = has(R"([\p{L}\p{M}]+)");
    splits_case = has(R"(\p{Lu})");
  }

  bool has_ends;           // 's, 't, 're, 've, 'm, 'll and 'd are pieces
  bool ignores_case;       // of these
  bool ends_follow_words;  // these belong to the letters before them
  bool takes_any_before;   // one character but a line's end before letters, else a space
  bool takes_space;        // one space before numbers
  size_t most_digits;
  bool takes_line_ends;   // after symbols; and whitespace up to a line's end is a piece
  bool takes_slashes;     // after symbols, too
  bool splits_at_space;   // whitespace matches nothing (CLIP), nothing takes it
  bool names_texts_ends;  // <|startoftext|> and <|endoftext|> are pieces
  bool has_marks;         // marks are letters
  bool splits_case;       // upper-case letters begin a word, marks are of either case
};

class WordMatcher {
 public:
  explicit WordMatcher(const WordRules& rules) : rules_(rules) {}

  size_t operator()(ItemSpan text, const Categories& categories) const {
    if (const size_t name = TextsEnd(text); name > 0) return name;
    if (const size_t end = rules_.ends_follow_words ? 0 : WordsEnd(text); end > 0) return end;
    if (const size_t letters = Letters(text, categories); letters > 0) {
      return letters + (rules_.ends_follow_words ? WordsEnd(text.subspan(letters)) : 0);
    }
    const size_t space = text[0].code == ' ' && !rules_.splits_at_space ? 1 : 0;
    const size_t before = rules_.takes_space ? space : 0;
    if (const size_t run = Run(text, before, categories.Has(kNumber), rules_.most_digits);
        run > 0) {
      return before + run;
    }
    const auto is_symbol = [&](char32_t code) {
      return !HasFlag(categories.flags, code, kWhitespace | kLetter | kNumber) &&
             !(rules_.has_marks && IsPatternMark(code));
    };
    if (const size_t run = Run(text, space, is_symbol); run > 0) {
      const auto is_tail = [&](char32_t code) {
        return IsLineEnd(code) || (rules_.takes_slashes && code == '/');
      };
      const size_t end = space + run;
      return end + (rules_.takes_line_ends ? Run(text, end, is_tail) : 0);
    }
    return rules_.splits_at_space ? 0 : Spaces(text, categories, rules_.takes_line_ends);
  }

 private:
  size_t TextsEnd(ItemSpan text) const {
    if (!rules_.names_texts_ends || text[0].code != '<') return 0;
    for (const absl::string_view name : {"<|startoftext|>", "<|endoftext|>"}) {
      if (StartsWith(text, name, false)) return name.size();
    }
    return 0;
  }

  size_t WordsEnd(ItemSpan text) const {
    if (!rules_.has_ends || text.empty() || text[0].code != '\'') return 0;
    for (const absl::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (StartsWith(text, end, rules_.ignores_case)) return end.size();
    }
    return 0;
  }

  // Letters, including the characters that may precede them.
  size_t Letters(ItemSpan text, const Categories& categories) const {
    const char32_t first = text[0].code;
    const bool takes_first =
        rules_.takes_any_before
            ? !IsLineEnd(first) && !HasFlag(categories.flags, first, kLetter | kNumber)
            : first == ' ' && !rules_.splits_at_space;
    // Regular expressions try all of their first alternative before the second.
    for (const bool ends_lower : {true, false}) {
      for (size_t before = takes_first ? 1 : 0;; before = 0) {
        const size_t run = rules_.splits_case ? CaseRun(text, before, ends_lower, categories)
                           : rules_.has_marks ? Run(text, before, categories.LettersOrMarks())
                                              : Run(text, before, categories.Has(kLetter));
        if (run > 0) return before + run;
        if (before == 0) break;
      }
      if (!rules_.splits_case) break;
    }
    return 0;
  }

  // Upper-case letters followed by lower-case letters, at least one of the latter if `ends_lower`,
  // otherwise of the former; caseless letters and marks count as both.
  static size_t CaseRun(ItemSpan text, size_t at, bool ends_lower, const Categories& categories) {
    const auto is_upper = [&](char32_t code) {
      return categories.IsLetterOrMark(code) && !IsLowerLetter(code);
    };
    const auto is_lower = [&](char32_t code) {
      return categories.IsLetterOrMark(code) && !IsUpperLetter(code);
    };
    const size_t upper = Run(text, at, is_upper);
    const size_t lower = Run(text, at + upper, is_lower);
    if (lower > 0 || !ends_lower) return upper > 0 || ends_lower ? upper + lower : 0;
    size_t end = upper;
    while (end > 0 && !is_lower(text[at + end - 1].code)) --end;
    return end;
  }

  const WordRules rules_;
};

// The pattern of DeepSeek-V3, in which symbols have their own categories.
size_t DeepSeekMatchAt(ItemSpan text, const Categories& categories) {
  const char32_t first = text[0].code;
  if (HasFlag(categories.flags, first, kPunctuation) && first < 0x80) {
    if (const size_t run = Run(text, 1, IsAsciiLetter); run > 0) return 1 + run;
  }
  const bool takes_first =
      !IsLineEnd(first) && !categories.IsLetter(first) && !IsPatternSymbol(first);
  if (const size_t run = takes_first ? Run(text, 1, categories.LettersOrMarks()) : 0; run > 0)
    return 1 + run;
  if (const size_t run = Run(text, 0, categories.LettersOrMarks()); run > 0) return run;
  const size_t space = first == ' ' ? 1 : 0;
  if (const size_t run = Run(text, space, IsPatternSymbol); run > 0) {
    return space + run + Run(text, space + run, IsLineEnd);
  }
  return Spaces(text, categories, true);
}

#define ATTENDANT_ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
#define ATTENDANT_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define ATTENDANT_UPPER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define ATTENDANT_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
constexpr absl::string_view kGpt2 =
    ATTENDANT_ENDINGS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr absl::string_view kKnown[] = {
    kGpt2,
    // Llama 3
    "(?i:" ATTENDANT_ENDINGS
    R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ATTENDANT_SPACES,
    // Qwen2, Qwen3
    "(?i:" ATTENDANT_ENDINGS
    R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ATTENDANT_SPACES,
    // Qwen3.5
    "(?i:" ATTENDANT_ENDINGS
    R"()|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" ATTENDANT_SPACES,
    // GPT-4o (o200k), Llama 4
    ATTENDANT_UPPER "*" ATTENDANT_LOWER "+(?i:" ATTENDANT_ENDINGS ")?|" ATTENDANT_UPPER
                    "+" ATTENDANT_LOWER "*(?i:" ATTENDANT_ENDINGS
                    R"()?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ATTENDANT_SPACES,
    // Tekken, of Mistral
    ATTENDANT_UPPER "*" ATTENDANT_LOWER "+|" ATTENDANT_UPPER "+" ATTENDANT_LOWER
                    R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ATTENDANT_SPACES,
    // CLIP
    ATTENDANT_ENDINGS R"(|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
    R"(<\|startoftext\|>|<\|endoftext\|>|)" ATTENDANT_ENDINGS
    R"(|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
};

constexpr absl::string_view kDeepSeek =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*)" ATTENDANT_SPACES;
#undef ATTENDANT_ENDINGS
#undef ATTENDANT_SPACES
#undef ATTENDANT_UPPER
#undef ATTENDANT_LOWER

}  // namespace

SplitPattern Gpt2Words() { return Scan(WordMatcher(WordRules(kGpt2))); }

SplitPattern KnownWords(absl::string_view regex) {
  const std::string escaped = absl::StrReplaceAll(regex, {{"\r", "\\r"}, {"\n", "\\n"}});
  for (const absl::string_view known : kKnown) {
    if (known == escaped) return Scan(WordMatcher(WordRules(known)));
  }
  return escaped == kDeepSeek ? Scan(DeepSeekMatchAt) : nullptr;
}

}  // namespace attendant::text
