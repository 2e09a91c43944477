// Parser and writer of --model.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Parses "SOURCE[,key=value…]" and leaves the name empty. Returns INVALID_ARGUMENT on failure.
absl::StatusOr<ModelSetting> ParseModelSource(const std::string& text);

// Parses "NAME=SOURCE[,key=value…]", or a source of the Hub, "hf:ORG/REPO[@REVISION][,key=value…]",
// with ORG/REPO as its name. Returns INVALID_ARGUMENT on failure.
absl::StatusOr<ModelSetting> ParseModelSetting(const std::string& text);

// Returns "NAME=SOURCE[,key=value…]" with the keys that differ from their defaults.
std::string FormatModelSetting(const ModelSetting& model);

// Parses "[key=value[,key=value…]]" into a setting without name and source. Returns
// INVALID_ARGUMENT on failure.
absl::StatusOr<ModelSetting> ParseModelKeys(const std::string& text);

}  // namespace attendant::server
