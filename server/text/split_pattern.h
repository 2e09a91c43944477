// Patterns that tokenizer.json splits texts at. Regular expressions are known ones, scanned by hand
// in linear time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"

namespace attendant::text {

// A part [first, last) of a text, and whether the pattern matches it.
struct Match {
  uint32_t first, last;
  bool is_match;
};

// Appends parts that cover a text, which is not empty, in order. Thread-safe.
using SplitPattern = std::function<void(ItemSpan text, std::vector<Match>& matches)>;

// Single characters that have any of the flags of unicode.h.
SplitPattern FlaggedCharacters(uint16_t any_flag);

// `\w+|[^\w\s]+`
SplitPattern WordsAndSymbols();

// Each run of `length` characters.
SplitPattern RunsOf(size_t length);

// A text that is not empty.
SplitPattern Literal(std::u32string text);

// A known regular expression. UNIMPLEMENTED names `field` for any other.
absl::StatusOr<SplitPattern> KnownPattern(absl::string_view regex, absl::string_view field);

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Turns matches into pieces, in place: those that are left are marked as no match.
void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches);

}  // namespace attendant::text
