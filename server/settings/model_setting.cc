#include "server/settings/model_setting.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "server/hub/hub_reference.h"
#include "server/settings/model_name.h"
#include "server/settings/setting_kinds.h"

namespace attendant::server {
namespace {

absl::Status Conflict(absl::string_view rule, const std::string& whole,
                      absl::string_view fix = "") {
  return absl::InvalidArgumentError(absl::StrCat(rule, "; got \"", whole, "\"", fix));
}

// A key of --model: how to read its value, and how to write it, empty for the default.
struct ModelKey {
  const char* name;
  std::function<absl::Status(const std::string& value, ModelSetting& model)> read;
  std::function<std::string(ModelSetting model)> show;
};

// A key with any text but the empty one.
ModelKey TextKey(const char* name, const std::string& expected, std::string ModelSetting::*member) {
  const auto read = [=](const std::string& value, ModelSetting& model) {
    model.*member = value;
    return value.empty() ? Unexpected(absl::StrCat(expected, " for ", name), value)
                         : absl::OkStatus();
  };
  return {name, read, [=](const ModelSetting& model) { return model.*member; }};
}

// A key with one of some names. `member` returns a reference to its value in a ModelSetting.
template <typename T, size_t rows, typename Member>
ModelKey NameKey(const char* name, const std::string& expected, const Named<T> (&names)[rows],
                 Member member) {
  const auto read = [=, &names](const std::string& value, ModelSetting& model) {
    const std::optional<T> found = ValueIn(names, value);
    if (!found) return Unexpected(absl::StrCat(expected, " for ", name), value);
    member(model) = *found;
    return absl::OkStatus();
  };
  const auto show = [=, &names](ModelSetting model) -> std::string {
    ModelSetting otherwise;
    return member(model) == member(otherwise) ? "" : NameIn(names, member(model));
  };
  return {name, read, show};
}

ModelKey Sha256Key() {
  const auto read = [](const std::string& value, ModelSetting& model) {
    model.weights_sha256 = absl::AsciiStrToLower(value);
    if (IsHex(model.weights_sha256, 64)) return absl::OkStatus();
    return Unexpected("64 hexadecimal digits for weights-sha256", value);
  };
  return {"weights-sha256", read, [](const ModelSetting& model) { return model.weights_sha256; }};
}

constexpr Named<bool> kFlagNames[] = {{"true", true}, {"false", false}};
constexpr Named<CausalChoice> kCausalNames[] = {{"true", CausalChoice::kCausal},
                                                {"false", CausalChoice::kBidirectional}};

// In the order in which settings are shown.
const std::vector<ModelKey>& ModelKeys() {
  using Model = ModelSetting;
  static const auto* const keys = new std::vector<ModelKey>{
      TextKey("overlay", "a file", &Model::overlay),
      TextKey("adapter", "a directory", &Model::adapter),
      Sha256Key(),
      NameKey("allow-nonfinite-weights", "true or false", kFlagNames,
              [](Model& model) -> bool& { return model.allow_nonfinite_weights; }),
      NameKey("dtype", "f32, bf16x3, bf16 or int8", kComputeTypeNames,
              [](Model& model) -> ComputeType& { return model.compute.type; }),
      NameKey("emulate", "true or false", kFlagNames,
              [](Model& model) -> bool& { return model.compute.emulate; }),
      NameKey("gemm", "auto, onednn, tiles or vector", kGemmNames,
              [](Model& model) -> Gemm& { return model.compute.gemm; }),
      NameKey("weights", "auto, f32, bf16 or f16", kWeightTypeNames,
              [](Model& model) -> WeightType& { return model.compute.weights; }),
      NameKey("pooling", "mean, first_token, last_token, max, pooler or yes_no",
              kPoolingChoiceNames, [](Model& model) -> PoolingChoice& { return model.pooling; }),
      TextKey("route", "the name of a route", &Model::route),
      NameKey("tower", "text or vision", kTowerNames,
              [](Model& model) -> Tower& { return model.tower; }),
      TextKey("task", "the name of a task", &Model::task),
      NameKey("causal", "true or false", kCausalNames,
              [](Model& model) -> CausalChoice& { return model.causal; }),
      TextKey("prune", "a file", &Model::prune_file)};
  return *keys;
}

absl::Status ReadKey(const std::string& key, const std::string& value, ModelSetting& model) {
  for (const ModelKey& known : ModelKeys()) {
    if (known.name == key) return known.read(value, model);
  }
  return Unexpected(
      "the key adapter, causal, dtype, emulate, gemm, overlay, pooling, prune, route, task, tower, "
      "weights, weights-sha256 or allow-nonfinite-weights",
      key);
}

// Refuses the keys that an overlay takes from its base.
absl::Status CheckOverlay(const ModelSetting& model, const std::string& whole) {
  if (model.overlay.empty()) return absl::OkStatus();
  const std::pair<const char*, bool> of_the_base[] = {
      {"dtype, emulate, gemm and weights", model.compute != ComputeMode()},
      {"adapter and task", !model.adapter.empty() || !model.task.empty()},
      {"pooling", model.pooling != PoolingChoice::kAsFiles},
      {"tower and route", model.tower != Tower::kOnly || !model.route.empty()},
      {"causal", model.causal != CausalChoice::kAsFiles}};
  for (const auto& [keys, are_set] : of_the_base) {
    if (!are_set) continue;
    return Conflict(absl::StrCat(keys, " cannot be combined with overlay"), whole,
                    "; set them on the base");
  }
  return absl::OkStatus();
}

// Parses `entries`, each "key=value", into `model`. Errors about combinations of keys show `whole`,
// the text that the user has written.
absl::StatusOr<ModelSetting> ReadKeys(absl::Span<const std::string> entries,
                                      const std::string& whole, ModelSetting model) {
  std::set<std::string> keys;
  for (const std::string& text : entries) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (!keys.insert(entry.first).second) {
      return Conflict(absl::StrCat("expected the key ", entry.first, " once"), whole);
    }
    RETURN_IF_ERROR(ReadKey(entry.first, entry.second, model));
  }
  if (model.compute.emulate && model.compute.type == ComputeType::kF32) {
    return Conflict("emulate=true requires a dtype other than f32", whole);
  }
  RETURN_IF_ERROR(CheckOverlay(model, whole));
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
    RETURN_IF_ERROR(ParseHubSource(model.source).status());
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
  ASSIGN_OR_RETURN(ModelSetting model, ReadSource(text, text));
  model.name = ParseHubSource(model.source)->repository;
  RETURN_IF_ERROR(CheckName(model.name));
  return model;
}

}  // namespace

std::string FormatModelSetting(const ModelSetting& model) {
  std::string text = absl::StrCat(model.name, "=", model.source);
  for (const ModelKey& key : ModelKeys()) {
    const std::string value = key.show(model);
    if (!value.empty()) absl::StrAppend(&text, ",", key.name, "=", value);
  }
  return text;
}

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
  RETURN_IF_ERROR(CheckName(parts.first));
  ASSIGN_OR_RETURN(ModelSetting model, ReadSource(parts.second, text));
  model.name = parts.first;
  return model;
}

absl::StatusOr<ModelSetting> ParseModelKeys(const std::string& text) {
  if (text.empty()) return ModelSetting();
  const std::vector<std::string> entries = absl::StrSplit(text, ',');
  return ReadKeys(entries, text, ModelSetting());
}

}  // namespace attendant::server
