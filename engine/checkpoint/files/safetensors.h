// The safetensors format: 8 bytes of header length, a JSON header, then the tensors back to back.
// The rules W1 to W9 for such files are explained in engine/checkpoint/README.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/data_type.h"
#include "engine/checkpoint/files/input_file.h"

namespace attendant {

// A tensor as the header describes it.
struct FileTensor {
  std::string dtype;                  // as spelled in the file, such as "BF16"
  std::optional<DataType> data_type;  // absent for types of the format that are not supported
  std::vector<int64_t> shape;
  int64_t offset = 0;  // bytes from the start of the file
  int64_t bytes = 0;
};

using TensorTable = std::map<std::string, FileTensor>;

struct SafetensorsFile {
  InputFile file;
  TensorTable tensors;
};

// Parses and checks a header (W2 to W9) that `data_bytes` bytes follow. All tensors of the result
// lie within the data, which they cover without holes or overlap; their offsets count from the
// start of the file. One message, which starts with `path`, lists all problems of the tensors.
absl::StatusOr<TensorTable> ParseSafetensorsHeader(absl::string_view header, int64_t data_bytes,
                                                   const std::string& path);

// Opens a file of at most `max_bytes` and checks its header (W1 to W9). Reads no tensor data.
absl::StatusOr<SafetensorsFile> OpenSafetensors(const std::string& path, int64_t max_bytes,
                                                int64_t max_header_bytes);

}  // namespace attendant
