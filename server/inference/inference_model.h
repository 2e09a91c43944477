// InferenceModel, a served model as seen by the Open Inference Protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_table.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Models called NAME take the checkpoint's inputs: token ids, features or hidden states. Models
// called NAME.text take texts, and models called NAME.hidden take hidden states, before the first
// layer or any other. One name for each kind of input, because many clients fill all inputs of a
// model's metadata.
inline constexpr char kTextSuffix[] = ".text", kHiddenSuffix[] = ".hidden";

enum class InferenceInput { kTokenIds, kFeatures, kHiddenStates, kTexts };

struct InferenceModel {
  std::string name;  // as given by the client
  std::shared_ptr<const ServedModel> model;
  InferenceInput input;
};

// An input or output tensor. `shape` begins with the batch; -1 means any size.
struct TensorInterface {
  std::string name;
  const char* datatype;
  std::vector<int64_t> shape;
  bool optional = false;
};

// Returns the model that `name` means. An empty `version` means the served one. Returns NOT_FOUND
// for an unknown model or version, and INVALID_ARGUMENT if the version is not a number, or if the
// name ends with kTextSuffix and the model has no tokenizer.
absl::StatusOr<InferenceModel> FindInferenceModel(const ModelTable& models, const std::string& name,
                                                  const std::string& version);

// Returns all names of a model: its own and those for other inputs that it takes.
std::vector<std::string> InferenceNames(const ServedModel& model);

// Returns "1" for models without versions.
std::string VersionText(const ServedModel& model);

// Return its inputs, except those that are rarely sent (position_ids; text_pair, unless the model
// scores classes) and the texts that NAME also takes instead of token ids; and its default outputs.
std::vector<TensorInterface> InputsOf(const InferenceModel& model);
std::vector<TensorInterface> OutputsOf(const InferenceModel& model);

}  // namespace attendant::server
