#include "server/models/model_lookup.h"

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

FoundModel FindModel(const ServedModels& models, const std::string& name) {
  if (name.empty()) {
    if (models.size() == 1) return models.begin()->second;
    return InvalidField(
        "model", absl::StrCat("a name, as the server has ", models.size(), " models"), "none");
  }
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("model: no model is named ", Quote(name)));
}

FoundModel FindModel(const ServedModels& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own) {
  FoundModel current = FindModel(models, name);
  if (own != nullptr && own->name == (current.ok() ? (*current)->name : name)) return own;
  return current;
}

absl::Status RetiredModel(const char* field, const std::string& name) {
  return absl::FailedPreconditionError(absl::StrCat(field, ": the version of model ", Quote(name),
                                                    " that made it is no longer served"));
}

}  // namespace attendant::server
