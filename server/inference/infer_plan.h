// From the names and parameters of a ModelInfer to the call of attendant.v1 that stands behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "inference/inference_service.pb.h"
#include "server/inference/inference_model.h"

namespace attendant::server {

// Where an output is in the response to the call.
enum class InferSource { kRows, kPooled, kTokenVectors, kIntermediate, kAttention };

struct InferOutput {
  std::string name;
  InferSource source;
  int64_t layer = 0;  // of kIntermediate and kAttention
};

struct InferPlan {
  // Attend if set, else Encode. Both lack their tensors, the request's id and the model's name.
  std::optional<v1::AttendRequest> attend;
  v1::EncodeRequest encode;
  std::vector<InferOutput> outputs;  // in the order of the answer
  absl::Duration timeout = absl::InfiniteDuration();
};

// INVALID_ARGUMENT names the output or the parameter, what was expected and what came.
absl::StatusOr<InferPlan> PlanInfer(const inference::ModelInferRequest& request,
                                    const InferenceModel& model);

}  // namespace attendant::server
