// Reads the parameters of a request, its inputs and its outputs, by name.
#pragma once

#include <google/protobuf/map.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"

namespace attendant::server {

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// Removes parameters without a value (null) from the request and its tensors.
void DropNullParameters(inference::ModelInferRequest& request);

// Return nullopt if the parameter is absent, and INVALID_ARGUMENT if it has another type or is a
// list or an object. A number may have any type that represents it: 9.0 is 9. A flag may be 0 or 1.
absl::StatusOr<std::optional<int64_t>> NumberIn(const InferParameters& parameters,
                                                const char* name);
absl::StatusOr<std::optional<std::string>> TextIn(const InferParameters& parameters,
                                                  const char* name);
absl::StatusOr<std::optional<bool>> FlagIn(const InferParameters& parameters, const char* name);

// Returns INVALID_ARGUMENT if the tensor `name` is in shared memory, which the server does not
// support.
absl::Status CheckNotShared(const std::string& name, const InferParameters& parameters);

// Checks reserved request parameters without effect: `priority`, because clients share by other
// rules, and those of sequences, which are not supported.
absl::Status CheckReserved(const InferParameters& parameters);

}  // namespace attendant::server
