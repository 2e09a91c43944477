#include "server/settings/read_settings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/hub/hub_reference.h"
#include "server/settings/model_setting.h"
#include "server/settings/settings_sources.h"
#include "server/settings/settings_table.h"

namespace attendant::server {
namespace {

absl::Status Apply(const SettingsSource& source, Settings& settings) {
  for (const SettingRow& row : SettingsTable()) {
    const auto texts = source.texts.find(row.name);
    if (texts == source.texts.end()) continue;
    const absl::Status status = row.kind.read(texts->second, settings);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source.labels.at(row.name), ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

// Checks that the base of every overlay is another model, which is not an overlay itself.
absl::Status CheckOverlays(const std::vector<ModelSetting>& models) {
  for (const ModelSetting& overlay : models) {
    if (overlay.overlay.empty()) continue;
    const bool has_base = std::any_of(models.begin(), models.end(), [&](const ModelSetting& base) {
      return base.name == overlay.source && base.overlay.empty();
    });
    if (has_base) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--model ", overlay.name,
                     ": expected the name of a base model before ,overlay= (not an overlay); got ",
                     overlay.source));
  }
  return absl::OkStatus();
}

// Checks the conditions that involve several settings.
absl::Status CheckTogether(const Settings& settings) {
  if (settings.port != 0 && settings.port == settings.http_port) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--port, --http-port: expected two different ports; got ", settings.port, " for both"));
  }
  if (settings.max_queue_tokens < settings.max_request_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-queue-tokens: expected at least --max-request-tokens (",
                     settings.max_request_tokens, "); got ", settings.max_queue_tokens));
  }
  return CheckOverlays(settings.models);
}

absl::StatusOr<Settings> ReadValues(
    CommandLine& line, const std::vector<std::pair<std::string, std::string>>& environment) {
  ASSIGN_OR_RETURN(SettingsSource variables, ReadVariables(environment, line.config_file));
  SettingsSource file;
  if (!line.config_file.empty()) {
    ASSIGN_OR_RETURN(file, ReadConfigFile(line.config_file));
  }

  // All sources are applied in order of increasing precedence, so that every value is checked.
  Settings settings;
  for (const SettingsSource* source : {&file, &variables, &line.flags}) {
    RETURN_IF_ERROR(Apply(*source, settings));
  }
  RETURN_IF_ERROR(CheckTogether(settings));
  if (settings.models.empty() && settings.model_repository.empty()) {
    ModelSetting& model = settings.models.emplace_back();
    model.name = model.source = "worked-example";
  }
  return settings;
}

absl::StatusOr<ModelSetting> ReadPull(const std::string& text) {
  ASSIGN_OR_RETURN(const HubReference reference, ParseHubSource(text));
  ModelSetting model;
  model.source = ToText(reference);
  return model;
}

absl::StatusOr<ModelSetting> ReadDescribed(const std::string& text) {
  absl::StatusOr<ModelSetting> model = ParseModelSource(text);
  if (!model.ok() || model->overlay.empty()) return model;
  return absl::InvalidArgumentError("expected a base model; got an overlay");
}

}  // namespace

absl::StatusOr<SettingsRequest> ReadSettings(
    const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  ASSIGN_OR_RETURN(CommandLine line, ReadFlags(arguments));
  SettingsRequest request;
  if (line.help) {
    request.kind = SettingsRequest::Kind::kHelp;
    request.text = HelpText();
    return request;
  }
  if (line.version) {
    request.kind = SettingsRequest::Kind::kVersion;
    request.text = absl::StrCat("attendant-server ", ATTENDANT_VERSION, "\noneDNN ",
                                OneDnnVersion(), "\ninstruction set ", EffectiveIsa(), "\n");
    return request;
  }
  if (line.completion) {
    request.kind = SettingsRequest::Kind::kCompletion;
    request.text = BashCompletion();
    return request;
  }
  ASSIGN_OR_RETURN(request.settings, ReadValues(line, environment));
  if (!line.pull && !line.describe) return request;
  request.kind = line.pull ? SettingsRequest::Kind::kPull : SettingsRequest::Kind::kDescribe;
  request.describe = {line.json, line.ranks};
  absl::StatusOr<ModelSetting> model =
      line.pull ? ReadPull(*line.pull) : ReadDescribed(*line.describe);
  if (!model.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.pull ? "--pull: " : "--describe: ", model.status().message()));
  }
  model->name = model->source;
  request.settings.models = {*std::move(model)};
  return request;
}

std::vector<std::string> DescribeSettings(const Settings& settings) {
  std::vector<std::string> lines;
  for (const SettingRow& row : SettingsTable()) {
    lines.push_back(absl::StrCat(row.name, " = ", row.kind.show(settings)));
  }
  return lines;
}

}  // namespace attendant::server
