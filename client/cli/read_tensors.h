// Readers of tensors given by flags, in a file or on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/messages.h"
#include "client/tensor.h"

namespace attendant::client {

// Returns the status with the name of the flag in front of its message.
absl::Status Named(const std::string& flag, const absl::Status& status);

// Gives a lone sequence its batch dimension if the tensor has one dimension less than `full_rank`:
// [S] becomes [1, S], or [S, 1] with sequences first.
void AddBatchDimension(size_t full_rank, Layout layout, Tensor& tensor);

// Reads floats from a file or the command line. Errors name the flag, here and below.
absl::StatusOr<Tensor> ReadFloats(const std::string& flag, const std::string& source);

// Reads integers from a file or the command line. Packs rows of different lengths, which must be
// `lengths`, or become `lengths` if it is empty; if it is null, all rows must have the same length.
// Reads nothing if `source` is empty.
absl::Status ReadIntegers(const std::string& flag, const std::string& source,
                          std::optional<Tensor>& tensor, std::vector<int64_t>* lengths);

}  // namespace attendant::client
