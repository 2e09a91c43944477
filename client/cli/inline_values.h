// Parsers of values given on the command line: rows of numbers such as "1,0,1,0;0,2,0,2", shapes
// and spans. Their errors are INVALID_ARGUMENT.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/messages.h"
#include "client/tensor.h"

namespace attendant::client {

// Returns float32 [rows, columns]. All rows must have the same length.
absl::StatusOr<Tensor> ParseFloatRows(const std::string& text);

// Returns rows of integers, possibly of different lengths.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParseIntRows(const std::string& text);

// Returns whether `text` can only be integers, and not the name of a file.
bool LooksInline(const std::string& text);

// Returns whether `text` begins with a whole number of any kind, as the name of a file does not.
bool LooksLikeFloats(const std::string& text);

// Parses "FIRST:COUNT". Errors name `flag`.
absl::StatusOr<LayerSpan> ParseLayerSpan(const std::string& flag, const std::string& text);

// Parses "2x5x768"; each number is at least 1.
absl::StatusOr<std::vector<int64_t>> ParseDimensions(const std::string& text);

}  // namespace attendant::client
