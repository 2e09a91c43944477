// Scores of tokens, rounded like the original.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace attendant::text {

// Parses a JSON number like serde_json: its digits as an integer, scaled by a power of ten. The
// last bit may differ from the nearest double and thus decide ties between tokens. Returns nullopt
// if the number is not finite.
std::optional<double> ParseScore(absl::string_view number);

}  // namespace attendant::text
