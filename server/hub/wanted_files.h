// ChooseFiles, which selects the files of a repository that a server needs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hub/hub_json.h"

namespace attendant::server {

// Returns the content of a small file of the repository, by path.
using ReadHubFile = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// Returns the paths of the files required for loading and tokenizing: configuration, tokenizer,
// safetensors, and modules of sentence-transformers, or the torch module of attendant.json. Files
// that make a directory a model come last, so that a directory filled in this order is a model only
// when complete. Returns INVALID_ARGUMENT with the weight files and the next step if the repository
// cannot be loaded.
absl::StatusOr<std::vector<std::string>> ChooseFiles(const HubListing& listing,
                                                     const ReadHubFile& read);

// Returns whether the path is a weight file's.
bool IsWeightFile(const std::string& path);

}  // namespace attendant::server
