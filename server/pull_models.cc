#include "server/pull_models.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/hub/hub_options.h"
#include "server/hub/pull_model.h"
#include "server/pull_progress.h"

namespace attendant::server {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status PullInto(ModelSetting& model, const HubOptions& options, bool logs_text) {
  ASSIGN_OR_RETURN(const HubReference reference, ParseHubSource(model.source));
  PullProgress progress(model.source, RewritesLine(logs_text));
  ASSIGN_OR_RETURN(const PulledModel pulled, PullModel(reference, options, progress.report()));
  model.pulled_folder = pulled.folder;
  model.origin = {reference.repository, pulled.commit};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> WithPulledModels(Settings settings, bool may_use_cache) {
  HubOptions options;
  for (ModelSetting& model : settings.models) {
    if (!IsHubSource(model.source) || !model.overlay.empty()) continue;
    if (options.cache.empty()) {
      ASSIGN_OR_RETURN(options, ReadHubOptions(Variable, settings.model_cache, settings.offline));
      options.user_agent = "attendant/" ATTENDANT_VERSION;
      options.max_weight_bytes = settings.max_model_bytes;
      options.falls_back_to_cache = may_use_cache;
    }
    absl::Status status = PullInto(model, options, settings.log_format == LogFormat::kText);
    if (!status.ok()) {
      // With --pull and --describe the name is the source, which the message contains.
      const bool is_named = model.name != model.source;
      return absl::Status(
          status.code(),
          absl::StrCat(is_named ? absl::StrCat("model ", model.name, ": ") : "", status.message()));
    }
    spdlog::info("{}: commit {} in {}", model.source, model.origin.commit, model.pulled_folder);
  }
  return settings;
}

}  // namespace attendant::server
