// The weight files of a folder.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/safetensors.h"

namespace attendant {

struct WeightFiles {
  std::vector<SafetensorsFile> files;
  std::vector<std::string> warnings;
};

// Opens model.safetensors, or else the shards that model.safetensors.index.json names (rule W10 in
// engine/checkpoint/README.md); max_model_bytes limits all of them together. A folder with weights
// only in other formats is refused with the command that converts them. Returns NOT_FOUND if there
// is none of these.
absl::StatusOr<WeightFiles> OpenWeightFiles(const std::string& folder,
                                            const CheckpointOptions& options);

// Opens the file `name` of the folder as its only weight file.
absl::StatusOr<WeightFiles> OpenWeightFile(const std::string& folder, const std::string& name,
                                           const CheckpointOptions& options);

// Returns true if `name` can only be a file in the same folder: it has no "/" and is not "..".
bool IsPlainName(const std::string& name);

// Adds a problem if `name`, which the key "file" of a description gives, is not plain. An empty
// name is not a further problem: it stands for one that could not be read.
void CheckFileName(const std::string& name, Problems& problems);

}  // namespace attendant
