// The safetensors format: 8 bytes of header length, a JSON header, then the tensors back to back.
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
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// What the header says of a tensor.
struct FileTensor {
  std::string dtype;                  // as spelled in the file, such as "BF16"
  std::optional<DataType> data_type;  // nothing: a type of the format that has no counterpart here
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first byte in the file
  int64_t bytes = 0;
};

using TensorTable = std::map<std::string, FileTensor>;

struct SafetensorsFile {
  InputFile file;
  TensorTable tensors;
};

// Checks a header of a file with `data_bytes` bytes after it. Every tensor lies inside
// the data, which they cover without holes or overlap. All problems of the tensors come in one
// message, which starts with `path`. Offsets are counted from the start of the file.
absl::StatusOr<TensorTable> ParseSafetensorsHeader(absl::string_view header, int64_t data_bytes,
                                                   const std::string& path);

// Opens a file of at most `max_bytes` and checks its header; reads no tensor.
absl::StatusOr<SafetensorsFile> OpenSafetensors(const std::string& path, int64_t max_bytes,
                                                int64_t max_header_bytes);

}  // namespace attendant
