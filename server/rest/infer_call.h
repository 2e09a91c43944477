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

struct InferTarget {
  std::string model;
  std::string version;                     // empty: the served version
  std::optional<int64_t> json_bytes = {};  // not set: the whole body
};

// Body -> message -> job -> response, like ModelInfer over gRPC (server/rpc/job_call.cc).
class InferCall final : public BodyCall {
 public:
  InferCall(BodyCallArgs entry, InferTarget target)
      : BodyCall(std::move(entry)), target_(std::move(target)) {}

 private:
  absl::Status OnMessage(MessageSlices body) override;
  absl::StatusOr<PreparedInfer> ReadMessage(MessageSlices body);
  absl::Status Submit(PreparedInfer prepared);
  void OnComputed(ComputeJob::End result);
  absl::Status Answer(ComputeJob::End computed);

  const InferTarget target_;
  // Used by one thread at a time.
  std::vector<bool> binary_outputs_;  // of the response
  bool binary_by_default_ = false;
  std::function<InferAnswer(Response)> to_answer_;
};

}  // namespace attendant::server
