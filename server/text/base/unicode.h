// Properties of code points as in the original tokenizer library: its parts use different versions
// of Unicode, so that no other library agrees with all of them.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace attendant::text {

// Each code point has a set of these.
enum CodeFlag : uint16_t {
  kWhitespace = 1 << 0,
  kRemoved = 1 << 1,         // by BERT's cleaning
  kPunctuation = 1 << 2,     // of BERT: category P, and all of ASCII's
  kCjk = 1 << 3,             // BERT surrounds it with spaces
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
  kCompatible = 1 << 15,  // has only a compatibility decomposition, or a longer one
};

// Returns one entry for each of 0x110000 code points. Thread-safe.
const uint16_t* CodeFlags();

inline bool HasFlag(const uint16_t* flags, char32_t code, uint16_t any) {
  return (flags[code] & any) != 0;
}

// Categories that few patterns use: Lu and Lt, Ll, M, P and S.
bool IsUpperLetter(char32_t code);
bool IsLowerLetter(char32_t code);
bool IsPatternMark(char32_t code);
bool IsPatternSymbol(char32_t code);

// Returns the lower-case form, except for U+0130, which becomes two characters.
char32_t LowerCase(char32_t code);

// Returns whether no grapheme cluster extends across `code`: a control character or line break.
bool EndsCluster(char32_t code);

// Returns the combining class; mostly 0.
uint8_t CombiningClass(char32_t code);

// Returns the full decomposition; empty if `code` has none. Excludes Hangul syllables, which are
// composed arithmetically.
absl::Span<const int32_t> Decomposition(char32_t code, bool compatible);

// Returns the composition of two characters, or 0.
char32_t Compose(char32_t first, char32_t second);

// Hangul syllables.
inline constexpr char32_t kHangulBase = 0xAC00, kHangulCount = 11172;
inline constexpr char32_t kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7;
inline constexpr char32_t kHangulVs = 21, kHangulTs = 28, kHangulLs = 19;

inline bool IsHangulSyllable(char32_t code) {
  return code >= kHangulBase && code < kHangulBase + kHangulCount;
}

}  // namespace attendant::text
