#include "server/models/model_lookup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/spelling.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kMostNamesTold = 8;
// Distances take microseconds for each name: with thousands of models, only those names are
// compared that share most letters at their ends with the one that a client sent, and only its
// first letters.
constexpr size_t kMostNamesCompared = 64, kMostLettersCompared = 128;

// Names, each after its distance from the one that a client sent.
using RankedNames = std::vector<std::pair<size_t, absl::string_view>>;

// Upper bound of the distance: replacing everything between the common prefix and the common suffix
// of the names.
size_t MostDistance(absl::string_view a, absl::string_view b) {
  const size_t shortest = std::min(a.size(), b.size());
  size_t first = 0, last = 0;
  while (first < shortest && a[first] == b[first]) ++first;
  while (first + last < shortest && a[a.size() - 1 - last] == b[b.size() - 1 - last]) ++last;
  return std::max(a.size(), b.size()) - first - last;
}

// Leaves at most `count` of the names, the nearest first.
void KeepNearest(size_t count, RankedNames& names) {
  count = std::min(count, names.size());
  std::partial_sort(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), names.end());
  names.resize(count);
}

// Returns "the models are "a", "b"", starting with the names most similar to `name`.
std::string NamesFor(absl::string_view name, absl::Span<const std::string> models) {
  if (models.empty()) return "the server has no models";
  RankedNames names;
  for (const std::string& known : models) names.emplace_back(MostDistance(known, name), known);
  KeepNearest(kMostNamesCompared, names);
  const absl::string_view start = name.substr(0, kMostLettersCompared);
  for (auto& [distance, known] : names) distance = SpellingDistance(known, start);
  KeepNearest(kMostNamesTold, names);
  std::string text = absl::StrCat(models.size() == 1 ? "the model is " : "the models are ",
                                  absl::StrJoin(names, ", ", [](std::string* out, const auto& one) {
                                    absl::StrAppend(out, Quote(std::string(one.second)));
                                  }));
  if (names.size() < models.size()) {
    absl::StrAppend(&text, " and ", models.size() - names.size(), " more");
  }
  return text;
}

}  // namespace

std::vector<std::string> NamesOf(const ServedModels& models) {
  std::vector<std::string> names;
  for (const auto& [name, model] : models) names.push_back(name);
  return names;
}

FoundModel FindModel(const ServedModels& models, const std::string& name) {
  if (name.empty()) {
    if (models.size() == 1) return models.begin()->second;
    return InvalidField("model", absl::StrCat("a name (the server has ", models.size(), " models)"),
                        "none");
  }
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return NotFound("model", absl::StrCat("no model is named ", Quote(name)),
                  NamesFor(name, NamesOf(models)));
}

FoundModel FindModel(const ServedModels& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own) {
  FoundModel current = FindModel(models, name);
  if (own != nullptr && own->name == (current.ok() ? (*current)->name : name)) return own;
  return current;
}

FoundModel FindModel(const ModelTable& models, const std::string& name,
                     std::shared_ptr<const ServedModel> own) {
  return FindModel(*models.Snapshot(), models.Resolve(name), std::move(own));
}

absl::Status CheckAliases(const std::map<std::string, std::string>& aliases,
                          absl::Span<const std::string> models, bool more_may_come) {
  for (const auto& [alias, name] : aliases) {
    if (absl::c_linear_search(models, alias)) {
      return InvalidField("--alias", "a name that is not a model's", Quote(alias));
    }
    if (!more_may_come && !absl::c_linear_search(models, name)) {
      return absl::InvalidArgumentError(absl::StrCat("--alias: ", alias, "=", name,
                                                     ": no model is named ", Quote(name), "; ",
                                                     NamesFor(name, models)));
    }
  }
  return absl::OkStatus();
}

absl::Status RetiredModel(const char* field, const std::string& name) {
  return absl::FailedPreconditionError(absl::StrCat(field, ": the version of model ", Quote(name),
                                                    " that made it is no longer served"));
}

}  // namespace attendant::server
