// From models of the Hugging Face Hub, --model NAME=hf:ORG/REPO, to folders in the cache.
#pragma once

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// The reaction if the Hub cannot be reached or refuses access.
enum class OnRefusal {
  kUseCache,  // use a complete snapshot in the cache
  kFail,
};

// Pulls every model with a source hf:…, as the settings and the variables of the Hub's own library
// ask (server/hub/hub_options.h). Returns the settings with the folders and commits. Logs progress.
// The message of an error is one line for the user.
absl::StatusOr<Settings> WithPulledModels(Settings settings, OnRefusal on_refusal);

// attendant-server --pull: pulls the one model of the settings, and prints its folder to standard
// output. Exit codes: 0 it is there, 1 it is not.
int PullAlone(const Settings& settings);

}  // namespace attendant::server
