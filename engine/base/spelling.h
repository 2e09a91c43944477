// The edit distance of two words, for error messages that suggest a similar name.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace attendant {

// Returns the Levenshtein distance: the smallest number of characters to insert, remove or replace.
size_t SpellingDistance(absl::string_view a, absl::string_view b);

}  // namespace attendant
