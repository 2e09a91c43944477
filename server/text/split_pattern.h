// Patterns at which tokenizer.json splits texts, or that it replaces. Only known regular
// expressions, scanned by hand in linear time, are supported.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"

namespace attendant::text {

// A part [first, last) of a text, and whether the pattern matches it.
struct Match {
  uint32_t first, last;
  bool is_match;
};

// Appends parts that cover a non-empty text in order; may append none if nothing matches.
// Thread-safe.
using SplitPattern = std::function<void(ItemSpan text, std::vector<Match>& matches)>;

// Single characters with any of the flags of unicode.h.
SplitPattern FlaggedCharacters(uint16_t any_flag);

// `\w+|[^\w\s]+`
SplitPattern WordsAndSymbols();

// Each run of `length` characters.
SplitPattern RunsOf(size_t length);

// A non-empty text.
SplitPattern Literal(std::u32string text);

// Loads the "pattern" of a component, a String or a Regex. Returns UNIMPLEMENTED for unknown
// regular expressions.
absl::StatusOr<SplitPattern> LoadPattern(const Fields& fields);

// Patterns of word-like pieces in GPT-2 and its successors, which try alternatives in turn. The
// first is GPT-2's; the second is that of a regular expression in tokenizer.json, in which line
// breaks may be literal or escaped (\r and \n), or empty if it is unknown.
SplitPattern Gpt2Words();
SplitPattern KnownWords(absl::string_view regex);

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Turns matches into pieces, in place; the remaining ones are marked as not matching.
void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches);

}  // namespace attendant::text
