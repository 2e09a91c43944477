// Reading and writing of the safetensors format: an 8-byte length, a JSON header, and the bytes of
// the tensors.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace attendant::client {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Reads the tensor of this name; with an empty name, the only tensor of the file. float64 becomes
// float32. Reads no bytes but the header and those of the tensor, so that a large checkpoint can be
// the source. Errors name the file, what was expected and what was found.
absl::StatusOr<Tensor> ReadSafetensors(const std::string& path, const std::string& name);

// Writes the tensors, whose names must be distinct.
absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace attendant::client
