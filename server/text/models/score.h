// Scores of tokens, rounded as the original reads them.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace attendant::text {

// Reads a JSON number as serde_json does: its digits as an integer, scaled by a power of ten. The
// result may differ in the last bit from the nearest double, and so decides ties between
// tokens. Nothing for a number that is not finite.
std::optional<double> ParseScore(absl::string_view number);

}  // namespace attendant::text
