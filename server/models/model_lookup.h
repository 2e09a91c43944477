// Lookup of the model that a request names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/models/model_table.h"
#include "server/models/served_model.h"

namespace attendant::server {

using FoundModel = absl::StatusOr<std::shared_ptr<const ServedModel>>;

// Returns the model called `name`; an empty name means the only model. Returns INVALID_ARGUMENT if
// the name is empty and there is not exactly one model, and NOT_FOUND with the existing names if no
// model has that name. Any client that may request a model may list all of them.
FoundModel FindModel(const ServedModels& models, const std::string& name);

// As above, but returns `own`, a version that may no longer be served, if `name` means its model.
// `own` may be null.
FoundModel FindModel(const ServedModels& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own);

// As above, among the models served now, by their names or aliases.
FoundModel FindModel(const ModelTable& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own = nullptr);

std::vector<std::string> NamesOf(const ServedModels& models);

// Returns INVALID_ARGUMENT if an alias has the name of a model, or if its model does not exist,
// unless `more_may_come`.
absl::Status CheckAliases(const std::map<std::string, std::string>& aliases,
                          absl::Span<const std::string> models, bool more_may_come);

// Returns FAILED_PRECONDITION: `field` refers to data of a retired version of model `name`.
absl::Status RetiredModel(const char* field, const std::string& name);

}  // namespace attendant::server
