// InferCall, one inference request over HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/execution/compute_job.h"
#include "server/inference/infer.h"
#include "server/rest/body_call.h"

namespace attendant::server {

// Body -> message -> job -> response, like ModelInfer over gRPC (server/rpc/job_call.cc).
class InferCall final : public BodyCall {
 public:
  // An empty `version` means the served one. `json_bytes` is not set if all of the body is JSON.
  InferCall(BodyCallArgs entry, std::string model, std::string version,
            std::optional<int64_t> json_bytes)
      : BodyCall(std::move(entry)),
        model_(std::move(model)),
        version_(std::move(version)),
        json_bytes_(json_bytes) {}

 private:
  absl::Status OnMessage(MessageSlices body) override;
  absl::StatusOr<PreparedInfer> ReadMessage(MessageSlices body);
  absl::Status Submit(PreparedInfer prepared);
  void OnComputed(ComputeJob::End result);
  absl::Status Answer(ComputeJob::End computed);

  const std::string model_, version_;
  const std::optional<int64_t> json_bytes_;
  // Used by one thread at a time.
  std::vector<bool> binary_outputs_;  // of the response
  bool binary_by_default_ = false;
  std::function<InferAnswer(Response)> to_answer_;
};

}  // namespace attendant::server
