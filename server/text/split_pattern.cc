#include "server/text/split_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/unicode.h"
#include "server/text/word_pattern.h"

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

// Runs of at most some characters that a predicate holds for.
class LimitedRuns : public SplitPattern {
 public:
  LimitedRuns(bool (*holds)(char32_t), size_t most) : holds_(holds), most_(most) {}

  void Find(ItemSpan text, std::vector<Match>& matches) const override {
    size_t rest = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && end - at < most_ && holds_(text[end].code)) ++end;
      if (end > at) {
        Add(rest, at, false, matches);
        Add(at, end, true, matches);
        rest = end;
      }
      at = std::max(end, at + 1);
    }
    Add(rest, text.size(), false, matches);
  }

 private:
  bool (*const holds_)(char32_t);
  const size_t most_;
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

absl::StatusOr<std::unique_ptr<SplitPattern>> KnownPattern(absl::string_view regex,
                                                           absl::string_view field) {
  if (auto words = KnownWords(regex); words != nullptr) return words;
  if (regex == "\\s") return FlaggedCharacters(kWhitespace);
  if (regex == "\\p{N}") return FlaggedCharacters(kNumber);
  if (regex == "\\p{L}") return FlaggedCharacters(kLetter);
  if (regex == "\\p{N}{1,3}") {
    return std::make_unique<LimitedRuns>(
        [](char32_t code) { return HasFlag(CodeFlags(), code, kNumber); }, 3);
  }
  if (regex == "[一-龥぀-ゟ゠-ヿ]+") {
    return std::make_unique<LimitedRuns>(
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
