// Tensor files by their extension.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/safetensors.h"
#include "client/tensor.h"

namespace attendant::client {

// `location` is FILE.npy, FILE.safetensors (which then holds one tensor) or FILE.safetensors:NAME.
absl::StatusOr<Tensor> ReadTensor(const std::string& location);

// INVALID_ARGUMENT unless `path` ends like a format that can hold this number of tensors.
absl::Status CheckWritable(const std::string& path, size_t tensors);

// To .npy one tensor; to .safetensors any number, under their names.
absl::Status WriteTensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace attendant::client
