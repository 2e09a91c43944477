// ChooseFiles, which selects the files of a repository that a server needs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hub/hub_json.h"

namespace attendant::server {

// Returns the content of a small file of the repository by its path.
using ReadHubFile = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// Returns the paths of the files that loading and tokenizing need: configuration, tokenizer,
// safetensors, modules of sentence-transformers; or the torch module of attendant.json. Files that
// mark a folder as a model come last, so that a folder filled in this order is a model only once it
// is complete. INVALID_ARGUMENT: the repository cannot be loaded; the message names its weight
// files and the next step.
absl::StatusOr<std::vector<std::string>> ChooseFiles(const HubListing& listing,
                                                     const ReadHubFile& read);

// Returns whether a path is of a file with weights.
bool IsWeightFile(const std::string& path);

}  // namespace attendant::server
