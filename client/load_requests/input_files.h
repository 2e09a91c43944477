// Functions that read recorded traffic from files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::client {

// Each reads a file line by line, empty lines aside. The error begins with its path: NOT_FOUND or
// PERMISSION_DENIED if it cannot be read, INVALID_ARGUMENT with the number of the line that holds
// something else, or if there are no lines.

// One length a line, from 1 to 2^24.
absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& path);

// One sequence a line, as JSON: a list of token ids, [101, 7592, 102], or an object with that list
// as `input_ids`.
absl::StatusOr<std::vector<std::vector<int64_t>>> ReadIds(const std::string& path);

// One request time per line, in seconds, in ascending order. Returned times are relative to the
// first.
absl::StatusOr<std::vector<double>> ReadTimestamps(const std::string& path);

}  // namespace attendant::client
