// Finds and opens the weight files of a folder.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/safetensors.h"

namespace attendant {

struct WeightFiles {
  std::vector<SafetensorsFile> files;
  std::vector<std::string> warnings;
};

// model.safetensors, or else the shards that model.safetensors.index.json names; the limit on
// bytes is for all of them together. A pickled file alone is refused with the way to convert it.
// NOT_FOUND: neither.
absl::StatusOr<WeightFiles> OpenWeightFiles(const std::string& folder,
                                            const CheckpointOptions& options);

// The one file `name` of the folder.
absl::StatusOr<WeightFiles> OpenWeightFile(const std::string& folder, const std::string& name,
                                           const CheckpointOptions& options);

// True if `name` is that of a file in the same folder: no path, no "..".
bool IsPlainName(const std::string& name);

}  // namespace attendant
