// Patterns that tokenizer.json splits texts at. Regular expressions are known ones, scanned by hand
// in linear time.
#pragma once

#include <cstdint>
#include <memory>
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

// Immutable; thread-safe.
class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  // Appends parts that cover the text, which is not empty, in order.
  virtual void Find(ItemSpan text, std::vector<Match>& matches) const = 0;
};

// Single characters that have any of the flags of unicode.h.
std::unique_ptr<SplitPattern> FlaggedCharacters(uint16_t any_flag);

// `\w+|[^\w\s]+`
std::unique_ptr<SplitPattern> WordsAndSymbols();

// A text that is not empty.
std::unique_ptr<SplitPattern> Literal(std::u32string text);

// A known regular expression. UNIMPLEMENTED names `field` for any other.
absl::StatusOr<std::unique_ptr<SplitPattern>> KnownPattern(absl::string_view regex,
                                                           absl::string_view field);

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Turns matches into pieces, in place: those that are left are marked as no match.
void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches);

}  // namespace attendant::text
