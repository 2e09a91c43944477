#include "server/text/base/unicode.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "server/text/base/unicode_tables.inc"

namespace attendant::text {
namespace {

// CJK ideographs as BERT's authors listed them.
constexpr int32_t kCjkRanges[] = {0x3400,  0x4DBF,  0x4E00,  0x9FFF,  0xF900,  0xFAFF,
                                  0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F,
                                  0x2B920, 0x2CEAF, 0x2F800, 0x2FA1F};

constexpr int kCodes = 0x110000;

struct DecompositionEntry {
  int32_t code;
  uint32_t begin, size;
};

// Tables derived once from the tables of the original library.
struct Tables {
  Tables();

  void Mark(absl::Span<const int32_t> ranges, CodeFlag flag) {
    for (size_t i = 0; i < ranges.size(); i += 2) {
      for (int32_t code = ranges[i]; code <= ranges[i + 1]; ++code) flags[code] |= flag;
    }
  }

  std::unique_ptr<uint16_t[]> flags;
  std::vector<DecompositionEntry> canonical, compatible;
};

Tables::Tables() : flags(new uint16_t[kCodes]()) {
  Mark(kRemovedRanges, CodeFlag::kRemoved);
  Mark(kWhitespaceRanges, CodeFlag::kWhitespace);
  Mark(kPunctuationRanges, CodeFlag::kPunctuation);
  Mark(kCjkRanges, CodeFlag::kCjk);
  Mark(kNonspacingMarkRanges, CodeFlag::kNonspacingMark);
  Mark(kMarkRanges, CodeFlag::kMark);
  Mark(kNumericRanges, CodeFlag::kNumeric);
  Mark(kLetterRanges, CodeFlag::kLetter);
  Mark(kNumberRanges, CodeFlag::kNumber);
  Mark(kWordRanges, CodeFlag::kWord);
  Mark(kJoinsBeforeRanges, CodeFlag::kJoinsBefore);
  Mark(kJoinsAfterRanges, CodeFlag::kJoinsAfter);
  for (size_t i = 0; i < std::size(kCombiningClasses); i += 3) {
    const int32_t range[] = {kCombiningClasses[i], kCombiningClasses[i + 1]};
    Mark(range, CodeFlag::kReordered);
  }
  for (size_t i = 0; i < std::size(kLowerRanges); i += 4) {
    for (int32_t code = kLowerRanges[i]; code <= kLowerRanges[i + 1]; code += kLowerRanges[i + 2]) {
      flags[code] |= CodeFlag::kHasLower;
    }
  }
  for (uint32_t i = 0; i < std::size(kDecompositions);) {
    const int32_t code = kDecompositions[i];
    const bool is_compatible = (kDecompositions[i + 1] & 0x100) != 0;
    const uint32_t size = kDecompositions[i + 1] & 0xFF;
    flags[code] |= is_compatible ? CodeFlag::kCompatible : CodeFlag::kCanonical;
    (is_compatible ? compatible : canonical).push_back({code, i + 2, size});
    i += 2 + size;
  }
}

const Tables& AllTables() {
  static const Tables* const tables = new Tables;
  return *tables;
}

absl::Span<const int32_t> Lookup(const std::vector<DecompositionEntry>& entries, char32_t code) {
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), static_cast<int32_t>(code),
      [](const DecompositionEntry& entry, int32_t wanted) { return entry.code < wanted; });
  return absl::MakeConstSpan(kDecompositions + found->begin, found->size);
}

// Returns the first of `count` ascending rows that is not `less`, or `count`.
template <typename Less>
size_t FirstNot(size_t count, Less less) {
  size_t low = 0;
  while (low < count) {
    const size_t middle = (low + count) / 2;
    if (less(middle)) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

// Returns the row of `width` numbers that starts with a range that may contain `code`, if any.
template <size_t kSize>
const int32_t* FindRow(const int32_t (&rows)[kSize], size_t width, char32_t code) {
  const int32_t wanted = static_cast<int32_t>(code);
  const size_t row =
      FirstNot(kSize / width, [&](size_t i) { return rows[i * width + 1] < wanted; });
  return row < kSize / width && rows[row * width] <= wanted ? rows + row * width : nullptr;
}

}  // namespace

const uint16_t* CodeFlags() { return AllTables().flags.get(); }

char32_t LowerCase(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  if (!HasFlag(CodeFlags(), code, kHasLower)) return code;
  return code + FindRow(kLowerRanges, 4, code)[3];
}

bool IsUpperLetter(char32_t code) {
  return code < 0x80 ? code >= 'A' && code <= 'Z' : FindRow(kUpperLetterRanges, 2, code) != nullptr;
}

bool IsLowerLetter(char32_t code) {
  return code < 0x80 ? code >= 'a' && code <= 'z' : FindRow(kLowerLetterRanges, 2, code) != nullptr;
}

bool IsPatternMark(char32_t code) {
  return code >= 0x80 && FindRow(kPatternMarkRanges, 2, code) != nullptr;
}

bool IsPatternSymbol(char32_t code) { return FindRow(kSymbolRanges, 2, code) != nullptr; }

bool EndsCluster(char32_t code) { return FindRow(kControlRanges, 2, code) != nullptr; }

uint8_t CombiningClass(char32_t code) {
  if (code < 0x300 || !HasFlag(CodeFlags(), code, kReordered)) return 0;
  const int32_t* range = FindRow(kCombiningClasses, 3, code);
  return range == nullptr ? 0 : static_cast<uint8_t>(range[2]);
}

absl::Span<const int32_t> Decomposition(char32_t code, bool is_compatible) {
  if (code < 0x80) return {};
  const uint16_t flags = CodeFlags()[code];
  if (is_compatible && (flags & kCompatible) != 0) return Lookup(AllTables().compatible, code);
  if ((flags & kCanonical) != 0) return Lookup(AllTables().canonical, code);
  return {};
}

char32_t Compose(char32_t first, char32_t second) {
  if (first - kHangulL < kHangulLs && second - kHangulV < kHangulVs) {
    return kHangulBase + ((first - kHangulL) * kHangulVs + second - kHangulV) * kHangulTs;
  }
  if (IsHangulSyllable(first) && (first - kHangulBase) % kHangulTs == 0 && second > kHangulT &&
      second < kHangulT + kHangulTs) {
    return first + (second - kHangulT);
  }
  constexpr size_t kRows = std::size(kCompositions) / 3;
  const auto wanted = std::pair(static_cast<int32_t>(first), static_cast<int32_t>(second));
  const auto pair_of = [](size_t row) {
    return std::pair(kCompositions[row * 3], kCompositions[row * 3 + 1]);
  };
  const size_t row = FirstNot(kRows, [&](size_t i) { return pair_of(i) < wanted; });
  return row < kRows && pair_of(row) == wanted ? static_cast<char32_t>(kCompositions[row * 3 + 2])
                                               : 0;
}

}  // namespace attendant::text
