#include "server/inference/inference_model.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/inference/infer_inputs.h"
#include "server/inference/infer_value.h"
#include "server/models/model_lookup.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr int64_t kAny = -1;

// An ending of a model's name, and the input that it means.
constexpr std::pair<const char*, InferenceInput> kSuffixes[] = {
    {kTextSuffix, InferenceInput::kTexts}, {kHiddenSuffix, InferenceInput::kHiddenStates}};

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
  for (const auto& [suffix, meant] : kSuffixes) {
    absl::string_view base = name;
    if (found.ok() || !absl::ConsumeSuffix(&base, suffix) || base.empty()) continue;
    FoundModel of_base = FindModel(models, std::string(base));
    if (!of_base.ok()) continue;
    found = std::move(of_base);
    input = meant;
  }
  if (!found.ok()) return found.status();
  const ModelTokenizer& tokenizer = *(*found)->tokenizer;
  if (input == InferenceInput::kTexts && tokenizer.tokenizer == nullptr) {
    return NotSupported("model_name", Quote(name), (*found)->name, tokenizer.why_none);
  }
  if (absl::Status status = CheckVersion(**found, version); !status.ok()) return status;
  if (!input) input = OwnInput((*found)->encoder->description());
  return InferenceModel{name, *std::move(found), *input};
}

std::vector<std::string> InferenceNames(const ServedModel& model) {
  std::vector<std::string> names = {model.name};
  if (model.tokenizer->tokenizer != nullptr) names.push_back(model.name + kTextSuffix);
  if (OwnInput(model.encoder->description()) != InferenceInput::kHiddenStates) {
    names.push_back(model.name + kHiddenSuffix);
  }
  return names;
}

std::string VersionText(const ServedModel& model) {
  return absl::StrCat(model.version == 0 ? 1 : model.version);
}

std::vector<TensorInterface> InputsOf(const InferenceModel& model) {
  const ModelDescription& description = model.model->encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  const TensorInterface mask = {"attention_mask", "INT64", {kAny, kAny}, true};
  std::vector<TensorInterface> inputs;
  switch (model.input) {
    case InferenceInput::kTexts:
      inputs = {{kTextInputs[0], kTextDatatype, {kAny, 1}}};
      if (description.classifier) {
        inputs.push_back({kTextInputs[1], kTextDatatype, {kAny, 1}, true});
      }
      return inputs;
    case InferenceInput::kHiddenStates:
      return {{"hidden_states", "FP32", {kAny, kAny, hidden_size}}, mask};
    case InferenceInput::kFeatures:
      return {{"features", "FP32", {kAny, kAny, description.patch_embedding->width(hidden_size)}},
              mask};
    case InferenceInput::kTokenIds:
      break;
  }
  inputs = {{"input_ids", "INT64", {kAny, kAny}}, mask};
  if (description.embeddings->token_types > 0) {
    inputs.push_back({"token_type_ids", "INT64", {kAny, kAny}, true});
  }
  return inputs;
}

std::vector<TensorInterface> OutputsOf(const InferenceModel& model) {
  const ModelDescription& description = model.model->encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  std::vector<TensorInterface> outputs = {
      {"last_hidden_state", "FP32", {kAny, kAny, description.layer.layer_width()}}};
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
