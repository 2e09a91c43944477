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
// float32. Reads only the header and the tensor, so it is fast for large checkpoints. Errors name
// the file, the expected and the actual content.
absl::StatusOr<Tensor> ReadSafetensors(const std::string& path, const std::string& name);

// Writes the tensors, which must have distinct names.
absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace attendant::client
