#include "server/settings/model_setting.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "server/hub/hub_reference.h"
#include "server/settings/model_name.h"
#include "server/settings/setting_kinds.h"

namespace attendant::server {
namespace {

bool IsSha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

absl::Status Conflict(absl::string_view rule, const std::string& whole,
                      absl::string_view fix = "") {
  return absl::InvalidArgumentError(absl::StrCat(rule, "; got \"", whole, "\"", fix));
}

absl::Status OverlayConflict(absl::string_view keys, const std::string& whole) {
  return Conflict(absl::StrCat(keys, " cannot be combined with overlay"), whole,
                  "; set them on the base");
}

absl::Status ReadBool(const std::string& key, const std::string& value, bool& target) {
  target = value == "true";
  if (value == "true" || value == "false") return absl::OkStatus();
  return Unexpected(absl::StrCat("true or false for ", key), value);
}

template <typename T, size_t rows>
absl::Status ReadName(const Named<T> (&names)[rows], const char* expected, const std::string& value,
                      T& target) {
  const std::optional<T> found = ValueIn(names, value);
  if (!found) return Unexpected(expected, value);
  target = *found;
  return absl::OkStatus();
}

absl::Status ReadKey(const std::string& key, const std::string& value, ModelSetting& model) {
  if (key == "weights-sha256") {
    model.weights_sha256 = absl::AsciiStrToLower(value);
    if (IsSha256(model.weights_sha256)) return absl::OkStatus();
    return Unexpected("64 hexadecimal digits for weights-sha256", value);
  }
  if (key == "allow-nonfinite-weights") return ReadBool(key, value, model.allow_nonfinite_weights);
  if (key == "dtype") {
    return ReadName(kComputeTypeNames, "f32, bf16x3, bf16 or int8 for dtype", value,
                    model.compute.type);
  }
  if (key == "emulate") return ReadBool(key, value, model.compute.emulate);
  if (key == "gemm") {
    return ReadName(kGemmNames, "auto, onednn, tiles or vector for gemm", value,
                    model.compute.gemm);
  }
  if (key == "weights") {
    return ReadName(kWeightTypeNames, "auto, f32, bf16 or f16 for weights", value,
                    model.compute.weights);
  }
  if (key == "pooling") {
    return ReadName(kPoolingChoiceNames,
                    "mean, first_token, last_token, max, pooler or yes_no for pooling", value,
                    model.pooling);
  }
  if (key == "route") {
    model.route = value;
    return value.empty() ? Unexpected("the name of a route for route", value) : absl::OkStatus();
  }
  if (key == "tower") {
    return ReadName(kTowerNames, "text or vision for tower", value, model.tower);
  }
  if (key == "causal") {
    bool causal = false;
    absl::Status status = ReadBool(key, value, causal);
    model.causal = causal ? CausalChoice::kCausal : CausalChoice::kBidirectional;
    return status;
  }
  if (key == "adapter") {
    model.adapter = value;
    return value.empty() ? Unexpected("a directory for adapter", value) : absl::OkStatus();
  }
  if (key == "task") {
    model.task = value;
    return value.empty() ? Unexpected("the name of a task for task", value) : absl::OkStatus();
  }
  if (key == "overlay") {
    model.overlay = value;
    return value.empty() ? Unexpected("a file for overlay", value) : absl::OkStatus();
  }
  if (key == "prune") {
    model.prune_file = value;
    return value.empty() ? Unexpected("a file for prune", value) : absl::OkStatus();
  }
  return Unexpected(
      "the key adapter, causal, dtype, emulate, gemm, overlay, pooling, prune, route, task, tower, "
      "weights, weights-sha256 or allow-nonfinite-weights",
      key);
}

// Parses `entries`, each "key=value", into `model`. Errors about combinations of keys show `whole`,
// the text that the user has written.
absl::StatusOr<ModelSetting> ReadKeys(absl::Span<const std::string> entries,
                                      const std::string& whole, ModelSetting model) {
  for (const std::string& text : entries) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (absl::Status status = ReadKey(entry.first, entry.second, model); !status.ok())
      return status;
  }
  if (model.compute.emulate && model.compute.type == ComputeType::kF32) {
    return Conflict("emulate=true requires a dtype other than f32", whole);
  }
  if (!model.overlay.empty() && model.compute != ComputeMode()) {
    return OverlayConflict("dtype, emulate, gemm and weights", whole);
  }
  if (!model.overlay.empty() && (!model.adapter.empty() || !model.task.empty())) {
    return OverlayConflict("adapter and task", whole);
  }
  if (!model.overlay.empty() && model.pooling != PoolingChoice::kAsFiles) {
    return OverlayConflict("pooling", whole);
  }
  if (!model.overlay.empty() && (model.tower != Tower::kOnly || !model.route.empty())) {
    return OverlayConflict("tower and route", whole);
  }
  if (!model.overlay.empty() && model.causal != CausalChoice::kAsFiles) {
    return OverlayConflict("causal", whole);
  }
  if (model.compute.gemm == Gemm::kTiles &&
      (model.compute.emulate || model.compute.type == ComputeType::kF32)) {
    return Conflict("gemm=tiles requires a dtype other than f32, without emulate", whole);
  }
  return model;
}

// Parses `text`, "SOURCE[,key=value…]", of `whole`.
absl::StatusOr<ModelSetting> ReadSource(const std::string& text, const std::string& whole) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  ModelSetting model;
  model.source = parts[0];
  if (IsHubSource(model.source)) {
    const absl::StatusOr<HubReference> reference = ParseHubSource(model.source);
    if (!reference.ok()) return reference.status();
  }
  return ReadKeys(absl::MakeConstSpan(parts).subspan(1), whole, std::move(model));
}

// Returns how to write a directory or a repository of the Hub without a name; empty for other
// texts.
std::string NamedForm(const std::string& text) {
  const std::string source = text.substr(0, text.find(','));
  std::error_code error;
  if (std::filesystem::is_directory(source, error)) {
    const std::string name = source.substr(source.find_last_of('/') + 1);
    if (!IsModelName(name)) return "";
    return absl::StrCat("; to serve that directory: --model ", name, "=", text);
  }
  if (!LooksLikeRepository(source)) return "";
  return absl::StrCat("; to serve that Hub repository: --model hf:", text);
}

absl::Status CheckName(const std::string& name) {
  return IsModelName(name) ? absl::OkStatus() : Unexpected(kModelNameRule, name);
}

// Parses a source of the Hub, which has the name of its repository.
absl::StatusOr<ModelSetting> ReadNameless(const std::string& text) {
  absl::StatusOr<ModelSetting> model = ReadSource(text, text);
  if (!model.ok()) return model;
  model->name = ParseHubSource(model->source)->repository;
  if (absl::Status status = CheckName(model->name); !status.ok()) return status;
  return model;
}

}  // namespace

absl::StatusOr<ModelSetting> ParseModelSource(const std::string& text) {
  if (text.empty() || text[0] == ',') return Unexpected("SOURCE[,key=value...]", text);
  return ReadSource(text, text);
}

absl::StatusOr<ModelSetting> ParseModelSetting(const std::string& text) {
  const size_t name_end = text.find_first_of("=,");
  if (IsHubSource(text) && (name_end == text.npos || text[name_end] == ',')) {
    return ReadNameless(text);
  }
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const size_t comma = parts.first.find(',');
  if (comma != parts.first.npos || parts.second.empty() || parts.second[0] == ',') {
    const absl::Status unexpected = Unexpected("NAME=SOURCE[,key=value...]", text);
    return absl::InvalidArgumentError(absl::StrCat(unexpected.message(), NamedForm(text)));
  }
  if (absl::Status status = CheckName(parts.first); !status.ok()) return status;
  absl::StatusOr<ModelSetting> model = ReadSource(parts.second, text);
  if (model.ok()) model->name = parts.first;
  return model;
}

absl::StatusOr<ModelSetting> ParseModelKeys(const std::string& text) {
  if (text.empty()) return ModelSetting();
  const std::vector<std::string> entries = absl::StrSplit(text, ',');
  return ReadKeys(entries, text, ModelSetting());
}

}  // namespace attendant::server
