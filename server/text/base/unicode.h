// Properties of code points as the original tokenizer library has them: each of its parts takes
// another version of Unicode, so no other library agrees with all of them.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace attendant::text {

// A set of these belongs to each code point.
enum CodeFlag : uint16_t {
  kWhitespace = 1 << 0,
  kRemoved = 1 << 1,         // by BERT's cleaning
  kPunctuation = 1 << 2,     // of BERT: category P, and all of ASCII's
  kCjk = 1 << 3,             // what BERT puts spaces around
  kNonspacingMark = 1 << 4,  // category Mn
  kMark = 1 << 5,            // category M
  kNumeric = 1 << 6,         // categories Nd, Nl, No, of the newest Unicode
  kLetter = 1 << 7,          // \p{L} of regular expressions
  kNumber = 1 << 8,          // \p{N} of regular expressions
  kWord = 1 << 9,            // \w
  kJoinsBefore = 1 << 10,    // belongs to the grapheme cluster of the character before it
  kJoinsAfter = 1 << 11,     // belongs to the grapheme cluster of the character after it
  kReordered = 1 << 12,      // has a combining class
  kHasLower = 1 << 13,
  kCanonical = 1 << 14,   // has a canonical decomposition
  kCompatible = 1 << 15,  // has a decomposition for compatibility alone, or a longer one
};

// One entry for each of 0x110000 code points. Thread-safe.
const uint16_t* CodeFlags();

inline bool HasFlag(const uint16_t* flags, char32_t code, uint16_t any) {
  return (flags[code] & any) != 0;
}

// Categories of regular expressions that few patterns name: Lu and Lt, Ll, M, P and S.
bool IsUpperLetter(char32_t code);
bool IsLowerLetter(char32_t code);
bool IsPatternMark(char32_t code);
bool IsPatternSymbol(char32_t code);

// The lower-case form, for all but U+0130, which becomes two characters.
char32_t LowerCase(char32_t code);

// Whether no grapheme cluster goes on after or before `code`: a control character, or a line's end.
bool EndsCluster(char32_t code);

// The combining class; 0 for most.
uint8_t CombiningClass(char32_t code);

// The whole decomposition, or nothing if `code` stays as it is. Hangul syllables are composed of
// their parts by arithmetic, and are not among them.
absl::Span<const int32_t> Decomposition(char32_t code, bool compatible);

// The character that two others form, or 0.
char32_t Compose(char32_t first, char32_t second);

// Hangul syllables.
inline constexpr char32_t kHangulBase = 0xAC00, kHangulCount = 11172;
inline constexpr char32_t kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7;
inline constexpr char32_t kHangulVs = 21, kHangulTs = 28, kHangulLs = 19;

inline bool IsHangulSyllable(char32_t code) {
  return code >= kHangulBase && code < kHangulBase + kHangulCount;
}

}  // namespace attendant::text
