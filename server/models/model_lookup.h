// Finds the model that a request names.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/models/served_model.h"

namespace attendant::server {

// An empty name means the only model: INVALID_ARGUMENT if there is not exactly one. NOT_FOUND: none
// of this name.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServedModels& models,
                                                             const std::string& name);

}  // namespace attendant::server
