// Reading and writing of tensor files, in the format given by the extension.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/safetensors.h"
#include "client/tensor.h"

namespace attendant::client {

// Reads one tensor. `location` is FILE.npy, FILE.safetensors (which must hold one tensor) or
// FILE.safetensors:NAME.
absl::StatusOr<Tensor> ReadTensor(const std::string& location);

// Returns INVALID_ARGUMENT unless `path` has the extension of a format that can hold this number of
// tensors.
absl::Status CheckWritable(const std::string& path, size_t tensors);

// Writes one tensor to .npy, or any number to .safetensors under their names.
absl::Status WriteTensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace attendant::client
