// Values written out on the command line: rows of numbers such as "1,0,1,0;0,2,0,2", shapes, spans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/messages.h"
#include "client/tensor.h"

namespace attendant::client {

// float32 [rows, columns]. INVALID_ARGUMENT for what is no number, and for rows of different
// lengths.
absl::StatusOr<Tensor> ParseFloatRows(const std::string& text);

// Rows of integers, which may differ in length.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParseIntRows(const std::string& text);

// Whether `text` can only be numbers, not a file's name.
bool LooksInline(const std::string& text);

// "FIRST:COUNT"; errors name `flag`.
absl::StatusOr<LayerSpan> ParseLayerSpan(const std::string& flag, const std::string& text);

// "2x5x768" as numbers, each at least 1.
absl::StatusOr<std::vector<int64_t>> ParseDimensions(const std::string& text);

}  // namespace attendant::client
