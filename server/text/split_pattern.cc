#include "server/text/split_pattern.h"

#include <algorithm>
#include <iterator>
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

class FlaggedPattern : public SplitPattern {
 public:
  explicit FlaggedPattern(uint16_t flag) : flag_(flag) {}

  void Find(ItemSpan text, std::vector<Match>& matches) const override {
    const uint16_t* flags = CodeFlags();
    size_t rest = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (!HasFlag(flags, text[i].code, flag_)) continue;
      Add(rest, i, false, matches);
      Add(i, i + 1, true, matches);
      rest = i + 1;
    }
    Add(rest, text.size(), false, matches);
  }

 private:
  const uint16_t flag_;
};

// Splits into runs of characters of the same kind; runs of whitespace, or single ones, do not
// match.
class RunPattern : public SplitPattern {
 public:
  // In order: a character is of the first kind whose flags it has, else of one more, which matches.
  struct RunKind {
    uint16_t flag;
    bool is_match;
    bool is_single = false;
  };
  explicit RunPattern(std::vector<RunKind> kinds) : kinds_(std::move(kinds)) {
    kinds_.push_back({0, true});
  }

  void Find(ItemSpan text, std::vector<Match>& matches) const override {
    const uint16_t* flags = CodeFlags();
    for (size_t first = 0, last; first < text.size(); first = last) {
      const size_t kind = KindOf(flags[text[first].code]);
      last = first + 1;
      while (!kinds_[kind].is_single && last < text.size() &&
             KindOf(flags[text[last].code]) == kind) {
        ++last;
      }
      Add(first, last, kinds_[kind].is_match, matches);
    }
  }

 private:
  size_t KindOf(uint16_t flags) const {
    size_t kind = 0;
    while (kinds_[kind].flag != 0 && (flags & kinds_[kind].flag) == 0) ++kind;
    return kind;
  }

  std::vector<RunKind> kinds_;
};

class LiteralPattern : public SplitPattern {
 public:
  explicit LiteralPattern(std::u32string text) : text_(std::move(text)) {}

  void Find(ItemSpan text, std::vector<Match>& matches) const override {
    const auto equals = [](const Item& item, char32_t code) { return item.code == code; };
    for (size_t at = 0; at < text.size();) {
      const auto found =
          std::search(text.begin() + at, text.end(), text_.begin(), text_.end(), equals);
      const size_t first = found - text.begin();
      Add(at, first, false, matches);
      at = std::min(first + text_.size(), text.size());
      Add(first, at, true, matches);
    }
  }

 private:
  const std::u32string text_;
};

// How the patterns of word-like pieces of GPT-2 and its successors differ.
struct WordRules {
  bool ignores_case = false;      // of 's, 't, 're, 've, 'm, 'll and 'd
  bool takes_any_before = false;  // one character but a line's end before letters, else a space
  bool takes_space = true;        // one space before numbers; in `takes_any_before`, never
  uint32_t most_digits = 0;       // 0: any number
  bool takes_line_ends = false;   // after symbols; and whitespace up to a line's end is a piece
  bool splits_at_space = false;   // whitespace matches nothing (CLIP), nothing takes it
  bool names_texts_ends = false;  // <|startoftext|> and <|endoftext|> are pieces
};

class WordPattern : public SplitPattern {
 public:
  explicit WordPattern(const WordRules& rules) : rules_(rules) {}

  void Find(ItemSpan text, std::vector<Match>& matches) const override {
    const uint16_t* flags = CodeFlags();
    for (size_t at = 0; at < text.size();) {
      size_t size = Special(text.subspan(at));
      if (size == 0) size = Word(text.subspan(at), flags);
      const bool is_match = size != 0;
      if (!is_match) size = 1;
      if (is_match || matches.empty() || matches.back().is_match || matches.back().last != at) {
        Add(at, at + size, is_match, matches);
      } else {
        ++matches.back().last;
      }
      at += size;
    }
  }

 private:
  static constexpr uint16_t kNotSymbol = kWhitespace | kLetter | kNumber;

  static bool IsLineEnd(char32_t code) { return code == '\r' || code == '\n'; }

  // Returns the number of items at the front that a predicate holds for.
  template <typename Predicate>
  static size_t Run(ItemSpan text, size_t at, Predicate predicate) {
    size_t end = at;
    while (end < text.size() && predicate(text[end].code)) ++end;
    return end - at;
  }

  size_t Special(ItemSpan text) const {
    if (rules_.names_texts_ends && text[0].code == '<') {
      for (const absl::string_view name : {"<|startoftext|>", "<|endoftext|>"}) {
        if (StartsWith(text, name, false)) return name.size();
      }
    }
    if (text[0].code != '\'') return 0;
    for (const absl::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (StartsWith(text, end, rules_.ignores_case)) return end.size();
    }
    return 0;
  }

  static bool StartsWith(ItemSpan text, absl::string_view start, bool ignores_case) {
    if (text.size() < start.size()) return false;
    for (size_t i = 0; i < start.size(); ++i) {
      char32_t code = text[i].code;
      // U+017F is a long s.
      if (ignores_case) code = code == 0x17F ? U's' : code < 0x80 ? LowerCase(code) : code;
      if (code != static_cast<unsigned char>(start[i])) return false;
    }
    return true;
  }

  size_t Word(ItemSpan text, const uint16_t* flags) const {
    const auto has = [&](char32_t code, uint16_t any) { return HasFlag(flags, code, any); };
    const auto is_letter = [&](char32_t code) { return has(code, kLetter); };
    const auto is_number = [&](char32_t code) { return has(code, kNumber); };
    const auto is_symbol = [&](char32_t code) { return !has(code, kNotSymbol); };
    const char32_t first = text[0].code;
    const size_t space = first == ' ' && !rules_.splits_at_space ? 1 : 0;
    size_t before = space;
    if (rules_.takes_any_before && !IsLineEnd(first) && !has(first, kLetter | kNumber)) before = 1;
    if (const size_t run = Run(text, before, is_letter); run > 0) return before + run;
    const size_t before_number = rules_.takes_space ? space : 0;
    if (const size_t run = Run(text, before_number, is_number); run > 0) {
      return before_number +
             (rules_.most_digits == 0 ? run : std::min<size_t>(run, rules_.most_digits));
    }
    if (const size_t run = Run(text, space, is_symbol); run > 0) {
      const size_t end = space + run;
      return end + (rules_.takes_line_ends ? Run(text, end, IsLineEnd) : 0);
    }
    return rules_.splits_at_space ? 0 : Spaces(text, flags);
  }

  // A run of whitespace, without the last one if a word follows, which then begins with that one.
  size_t Spaces(ItemSpan text, const uint16_t* flags) const {
    const size_t run = Run(text, 0, [&](char32_t c) { return HasFlag(flags, c, kWhitespace); });
    if (rules_.takes_line_ends) {
      for (size_t end = run; end > 0; --end) {
        if (IsLineEnd(text[end - 1].code)) return end;
      }
    }
    return run > 1 && run < text.size() ? run - 1 : run;
  }

  const WordRules rules_;
};

#define ATTENDANT_ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
struct KnownWords {
  absl::string_view regex;
  WordRules rules;
};

constexpr absl::string_view kGpt2 =
    ATTENDANT_ENDINGS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const KnownWords kKnownWords[] = {
    {kGpt2, {}},
    // Llama 3
    {"(?i:" ATTENDANT_ENDINGS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.ignores_case = true,
      .takes_any_before = true,
      .takes_space = false,
      .most_digits = 3,
      .takes_line_ends = true}},
    // Qwen
    {"(?i:" ATTENDANT_ENDINGS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.ignores_case = true,
      .takes_any_before = true,
      .takes_space = false,
      .most_digits = 1,
      .takes_line_ends = true}},
    // CLIP
    {ATTENDANT_ENDINGS R"(|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
     {.most_digits = 1, .splits_at_space = true}},
    {R"(<\|startoftext\|>|<\|endoftext\|>|)" ATTENDANT_ENDINGS
     R"(|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
     {.most_digits = 1, .splits_at_space = true, .names_texts_ends = true}},
};
#undef ATTENDANT_ENDINGS

}  // namespace

std::unique_ptr<SplitPattern> FlaggedCharacters(uint16_t any_flag) {
  return std::make_unique<FlaggedPattern>(any_flag);
}

std::unique_ptr<SplitPattern> WordsAndSymbols() {
  return std::make_unique<RunPattern>(
      std::vector<RunPattern::RunKind>{{kWord, true}, {kWhitespace, false}});
}

std::unique_ptr<SplitPattern> Literal(std::u32string text) {
  return std::make_unique<LiteralPattern>(std::move(text));
}

std::unique_ptr<SplitPattern> Gpt2Words() { return std::make_unique<WordPattern>(WordRules{}); }

absl::StatusOr<std::unique_ptr<SplitPattern>> KnownPattern(absl::string_view regex,
                                                           absl::string_view field) {
  for (const KnownWords& known : kKnownWords) {
    if (known.regex == regex) return std::make_unique<WordPattern>(known.rules);
  }
  if (regex == "\\s") return FlaggedCharacters(kWhitespace);
  if (regex == "\\p{N}") return FlaggedCharacters(kNumber);
  if (regex == "\\p{L}") return FlaggedCharacters(kLetter);
  return Unsupported(field, absl::StrCat("\"", regex, "\""),
                     "a String, or the pattern of GPT-2, Llama 3, Qwen or CLIP");
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
