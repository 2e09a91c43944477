// Resolves models of the Hugging Face Hub, --model NAME=hf:ORG/REPO, to directories in the cache.
#pragma once

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// The action to take if the Hub is unreachable or refuses access.
enum class OnRefusal {
  kUseCache,  // use a complete snapshot in the cache
  kFail,
};

// Pulls every model with a source hf:…, following the settings and the variables of the Hub's own
// library (server/hub/hub_options.h). Returns the settings with directories and commits. Logs
// progress. The message of an error is one line for the user.
absl::StatusOr<Settings> WithPulledModels(Settings settings, OnRefusal on_refusal);

// attendant-server --pull: pulls the settings' model and prints its directory to standard output.
// Exit codes: 0 success, 1 failure.
int PullAlone(const Settings& settings);

}  // namespace attendant::server
