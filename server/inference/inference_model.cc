#include "server/inference/inference_model.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/inference/datatypes.h"
#include "server/models/model_lookup.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr int64_t kAny = -1;

// Returns the model's input under its own name.
InferenceInput OwnInput(const ModelDescription& description) {
  if (description.embeddings) return InferenceInput::kTokenIds;
  return description.patch_embedding ? InferenceInput::kFeatures : InferenceInput::kHiddenStates;
}

absl::Status CheckVersion(const ServedModel& model, const std::string& version) {
  if (version.empty()) return absl::OkStatus();
  int64_t number;
  if (!absl::SimpleAtoi(version, &number)) {
    return InvalidField("model_version", "a number or an empty string", Quote(version));
  }
  if (version == VersionText(model)) return absl::OkStatus();
  return NotFound("model_version",
                  absl::StrCat("model ", model.name, " has no version ", Quote(version)),
                  absl::StrCat("use ", VersionText(model)));
}

}  // namespace

absl::StatusOr<InferenceModel> FindInferenceModel(const ModelTable& models, const std::string& name,
                                                  const std::string& version) {
  if (name.empty()) return InvalidField("model_name", "a model name", "none");
  FoundModel found = FindModel(models, name);
  std::optional<InferenceInput> input;
  absl::string_view base = name;
  if (!found.ok() && absl::ConsumeSuffix(&base, kHiddenSuffix) && !base.empty()) {
    const FoundModel hidden = FindModel(models, std::string(base));
    if (hidden.ok()) {
      found = hidden;
      input = InferenceInput::kHiddenStates;
    }
  }
  if (!found.ok()) return found.status();
  if (absl::Status status = CheckVersion(**found, version); !status.ok()) return status;
  if (!input) input = OwnInput((*found)->encoder->description());
  return InferenceModel{name, *std::move(found), *input};
}

std::vector<std::string> InferenceNames(const ServedModel& model) {
  if (OwnInput(model.encoder->description()) == InferenceInput::kHiddenStates) return {model.name};
  return {model.name, absl::StrCat(model.name, kHiddenSuffix)};
}

std::string VersionText(const ServedModel& model) {
  return absl::StrCat(model.version == 0 ? 1 : model.version);
}

std::vector<TensorInterface> InputsOf(const InferenceModel& model) {
  const ModelDescription& description = model.model->encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  const TensorInterface mask = {"attention_mask", "INT64", {kAny, kAny}, true};
  switch (model.input) {
    case InferenceInput::kHiddenStates:
      return {{"hidden_states", "FP32", {kAny, kAny, hidden_size}}, mask};
    case InferenceInput::kFeatures:
      return {{"features", "FP32", {kAny, kAny, description.patch_embedding->width(hidden_size)}},
              mask};
    case InferenceInput::kTokenIds:
      break;
  }
  std::vector<TensorInterface> inputs = {{"input_ids", "INT64", {kAny, kAny}}, mask};
  if (description.embeddings->token_types > 0) {
    inputs.push_back({"token_type_ids", "INT64", {kAny, kAny}, true});
  }
  if (model.model->tokenizer->tokenizer != nullptr) {
    inputs.push_back({"text", kTextDatatype, {kAny, 1}, true});
    inputs.push_back({"text_pair", kTextDatatype, {kAny, 1}, true});
  }
  return inputs;
}

std::vector<TensorInterface> OutputsOf(const InferenceModel& model) {
  const ModelDescription& description = model.model->encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  std::vector<TensorInterface> outputs = {{"last_hidden_state", "FP32", {kAny, kAny, hidden_size}}};
  if (description.pooling) {
    outputs.push_back(
        {"sentence_embedding", "FP32", {kAny, description.pooling->width(hidden_size)}});
  } else if (description.classifier) {
    outputs.push_back({"logits", "FP32", {kAny, description.classifier->width(hidden_size)}});
  } else if (description.token_head) {
    outputs.push_back({"logits", "FP32", {kAny, kAny, description.token_head->width(hidden_size)}});
  }
  return outputs;
}

}  // namespace attendant::server
