// Tensors of flags: from files, or written out.
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

// The status with the flag in front of its message.
absl::Status Named(const std::string& flag, const absl::Status& status);

// [S] becomes [1, S], or [S, 1] with sequences first.
void AddBatchDimension(size_t full_rank, Layout layout, Tensor& tensor);

// Floats from a file, or written out. Errors name the flag, here and below.
absl::StatusOr<Tensor> ReadFloats(const std::string& flag, const std::string& source);

// Integers from a file, or written out. Ragged rows become packed ones, whose lengths `lengths`
// takes; without `lengths` they only lose their row borders. Nothing without a source.
absl::Status ReadIntegers(const std::string& flag, const std::string& source,
                          std::optional<Tensor>& tensor, std::vector<int64_t>* lengths);

}  // namespace attendant::client
