// Lookup of the model that a request names.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Returns the model called `name`. An empty name stands for the only model. Returns
// INVALID_ARGUMENT if the name is empty and there is not exactly one model, NOT_FOUND if no model
// has the name.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServedModels& models,
                                                             const std::string& name);

}  // namespace attendant::server
