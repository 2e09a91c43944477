// The distance between two words, for messages that suggest a known one.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace attendant {

// Levenshtein distance: the fewest letters to insert, remove or replace.
size_t SpellingDistance(absl::string_view a, absl::string_view b);

}  // namespace attendant
