#include "server/models/model_lookup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/spelling.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kMostNamesTold = 8;
// Of a name that a client sent, as distances take time for each letter.
constexpr size_t kMostLettersCompared = 128;

// Returns "the models are "a", "b"", those first whose names are nearest to `name`.
std::string NamesFor(const std::string& name, const ServedModels& models) {
  if (models.empty()) return "the server has no models";
  const std::string start = name.substr(0, kMostLettersCompared);
  std::vector<std::pair<size_t, std::string>> names;  // with their distances
  for (const auto& [known, model] : models) {
    names.emplace_back(SpellingDistance(known, start), known);
  }
  const size_t told = std::min(names.size(), kMostNamesTold);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(told);
  std::partial_sort(names.begin(), end, names.end());
  std::string text =
      absl::StrCat(models.size() == 1 ? "the model is " : "the models are ",
                   absl::StrJoin(names.begin(), end, ", ", [](std::string* out, const auto& one) {
                     absl::StrAppend(out, Quote(one.second));
                   }));
  if (told < names.size()) absl::StrAppend(&text, " and ", names.size() - told, " more");
  return text;
}

}  // namespace

FoundModel FindModel(const ServedModels& models, const std::string& name) {
  if (name.empty()) {
    if (models.size() == 1) return models.begin()->second;
    return InvalidField(
        "model", absl::StrCat("a name, as the server has ", models.size(), " models"), "none");
  }
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("model: no model is named ", Quote(name), "; ", NamesFor(name, models)));
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
