// The parameters of a request, of its inputs and of its outputs, by name.
#pragma once

#include <google/protobuf/map.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"

namespace attendant::server {

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// Removes the parameters without a value, of the request and of its tensors: a null is absent.
void DropNullParameters(inference::ModelInferRequest& request);

// Each returns nothing if the parameter is absent, and INVALID_ARGUMENT if it is of another type
// or, being a list or an object, has no value. A number may come as any type that has it: 9.0 is 9.
// A flag may be 0 or 1.
absl::StatusOr<std::optional<int64_t>> NumberIn(const InferParameters& parameters,
                                                const char* name);
absl::StatusOr<std::optional<std::string>> TextIn(const InferParameters& parameters,
                                                  const char* name);
absl::StatusOr<std::optional<bool>> FlagIn(const InferParameters& parameters, const char* name);

// INVALID_ARGUMENT: the tensor called `name` is in shared memory, of which the server has none.
absl::Status CheckNotShared(const std::string& name, const InferParameters& parameters);

// Checks the reserved parameters of a request that have no effect here: `priority`, since callers
// share by other rules, and those of sequences, of which there are none.
absl::Status CheckReserved(const InferParameters& parameters);

}  // namespace attendant::server
