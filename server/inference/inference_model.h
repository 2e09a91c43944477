// A served model as the Open Inference Protocol names and describes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_table.h"
#include "server/models/served_model.h"

namespace attendant::server {

// The models called NAME take what the checkpoint takes: token ids, or features, or hidden states.
// Those called NAME.hidden take hidden states, before the first layer or any other.
inline constexpr char kHiddenSuffix[] = ".hidden";

enum class InferenceInput { kTokenIds, kFeatures, kHiddenStates };

struct InferenceModel {
  std::string name;  // as the caller says it
  std::shared_ptr<const ServedModel> model;
  InferenceInput input;
};

// A tensor that a model takes or gives. `shape` begins with the batch; -1: any size.
struct TensorInterface {
  std::string name;
  const char* datatype;
  std::vector<int64_t> shape;
  bool optional = false;
};

// Returns the model that `name` means. An empty `version` is the one that is served. NOT_FOUND: no
// such model or version; INVALID_ARGUMENT: the version is no number.
absl::StatusOr<InferenceModel> FindInferenceModel(const ModelTable& models, const std::string& name,
                                                  const std::string& version);

// Every name of a model: its own and, if that takes something else, that of its hidden states.
std::vector<std::string> InferenceNames(const ServedModel& model);

// "1" for models without versions.
std::string VersionText(const ServedModel& model);

// The tensors that it takes, all but position_ids, which few send; and those that it gives if a
// request names none.
std::vector<TensorInterface> InputsOf(const InferenceModel& model);
std::vector<TensorInterface> OutputsOf(const InferenceModel& model);

}  // namespace attendant::server
