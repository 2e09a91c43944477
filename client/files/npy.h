// Reading and writing of NumPy's .npy format, versions 1 and 2.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace attendant::client {

// Reads a little-endian array in C order, of bool, integers, float16, float32, or float64, which
// becomes float32. Returns INVALID_ARGUMENT for anything else, such as Fortran order or pickled
// objects, with the name and content type of the file.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);

// Writes a tensor of any type except bfloat16, which NumPy does not have.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace attendant::client
