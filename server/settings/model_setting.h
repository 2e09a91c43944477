// The text of --model.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// "SOURCE[,key=value…]"; the name is left empty.
absl::StatusOr<ModelSetting> ParseModelSource(const std::string& text);

// "NAME=SOURCE[,key=value…]".
absl::StatusOr<ModelSetting> ParseModelSetting(const std::string& text);

}  // namespace attendant::server
