// Parser of the text of --model.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Parses "SOURCE[,key=value…]" and leaves the name empty. Returns INVALID_ARGUMENT if it cannot.
absl::StatusOr<ModelSetting> ParseModelSource(const std::string& text);

// Parses "NAME=SOURCE[,key=value…]", or a source of the Hub without a name, "hf:ORG/REPO[@REVISION]
// [,key=value…]", whose name is then ORG/REPO. Returns INVALID_ARGUMENT if it cannot.
absl::StatusOr<ModelSetting> ParseModelSetting(const std::string& text);

// Parses "[key=value[,key=value…]]" alone, into a setting without name and source. Returns
// INVALID_ARGUMENT if it cannot.
absl::StatusOr<ModelSetting> ParseModelKeys(const std::string& text);

}  // namespace attendant::server
