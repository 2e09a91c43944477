// Lookup of the model that a request names.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/models/model_table.h"
#include "server/models/served_model.h"

namespace attendant::server {

using FoundModel = absl::StatusOr<std::shared_ptr<const ServedModel>>;

// Returns the model called `name`. An empty name stands for the only model. Returns
// INVALID_ARGUMENT if the name is empty and there is not exactly one model, NOT_FOUND, with the
// names that there are, if no model has the name. Any client that may ask for a model may list them
// all.
FoundModel FindModel(const ServedModels& models, const std::string& name);

// As above, but returns `own`, a version that may be served no longer, if `name` means its model.
// `own` may be null.
FoundModel FindModel(const ServedModels& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own);

// As above, among the models that are served now, by their own names or by aliases.
FoundModel FindModel(const ModelTable& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own = nullptr);

// Returns INVALID_ARGUMENT if an alias of the table has the name of a model, or if its own model is
// not there; `more_may_come` says that models come later.
absl::Status CheckAliases(const ModelTable& models, bool more_may_come);

// Returns FAILED_PRECONDITION: what `field` refers to was made by a version of the model called
// `name` that has been retired.
absl::Status RetiredModel(const char* field, const std::string& name);

}  // namespace attendant::server
