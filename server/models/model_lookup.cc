#include "server/models/model_lookup.h"

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServedModels& models,
                                                             const std::string& name) {
  if (name.empty()) {
    if (models.size() == 1) return models.begin()->second;
    return InvalidField(
        "model", absl::StrCat("a name, as the server has ", models.size(), " models"), "none");
  }
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("model: no model is named ", Quote(name)));
}

}  // namespace attendant::server
