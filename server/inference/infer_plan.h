// Translates the names and parameters of a ModelInfer into a request of attendant.v1.
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
#include "server/request/compute_request.h"

namespace attendant::server {

struct InferOutput {
  std::string name;
  OutputKind kind;  // with its layer, if layers have one each
  int64_t layer = 0;
};

struct InferPlan {
  // Attend if set, otherwise Encode. Both lack tensors, request id and model name.
  std::optional<v1::AttendRequest> attend;
  v1::EncodeRequest encode;
  std::vector<InferOutput> outputs;  // in the order of the response
  absl::Duration timeout = absl::InfiniteDuration();
};

// Returns INVALID_ARGUMENT with the output or parameter, the expected value and the given one.
absl::StatusOr<InferPlan> PlanInfer(const inference::ModelInferRequest& request,
                                    const InferenceModel& model);

}  // namespace attendant::server
