// Resolves models of the Hugging Face Hub, --model NAME=hf:ORG/REPO, to directories in the cache.
#pragma once

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Pulls every model with a source hf:…, following the settings and the variables of the Hub's own
// library (server/hub/hub_options.h). Returns the settings with directories and commits. Logs
// progress. If the Hub is unreachable or refuses access, uses a complete snapshot in the cache if
// `may_use_cache`, and fails otherwise. The message of an error is one line for the user.
absl::StatusOr<Settings> WithPulledModels(Settings settings, bool may_use_cache = true);

}  // namespace attendant::server
