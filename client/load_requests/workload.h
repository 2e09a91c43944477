// Workload, the requests that a load test sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/load_requests/sequences.h"

namespace attendant::client {

enum class Method { kAttend, kEncode };

// The service to call: attendant.v1.EncoderService, or the Open Inference Protocol.
enum class Protocol { kNative, kOip };

// The form of the requests.
struct WorkloadOptions {
  Method method = Method::kEncode;
  Protocol protocol = Protocol::kNative;
  std::string model;
  int64_t batch = 1;    // sequences per request
  bool padded = false;  // as the Open Inference Protocol always is
  bool token_ids = false;
  DataType dtype = DataType::kFloat32;  // of hidden states, on the wire
  bool pooled = false;                  // requests pooled vectors instead of hidden states
  uint64_t seed = 1;
};

// One request.
struct WorkItem {
  PreparedRequest request;
  int64_t tokens;  // kept tokens
};

// A set of requests that is made once and sent again and again, so that making requests costs
// nothing while the test runs. Immutable and thread-safe.
class Workload {
 public:
  // Makes requests of sequences whose lengths are drawn, as many as fit into 256 MiB, up to 512; or
  // of those of a file, in its order and up to 1 GiB, of which the last request may have fewer than
  // the others. Hidden states are normally distributed, and token ids that no file gives are drawn
  // uniformly from the model's vocabulary. INVALID_ARGUMENT: the model cannot take such requests,
  // or those of a file are too many.
  static absl::StatusOr<Workload> Make(const WorkloadOptions& options, const Sequences& sequences,
                                       const ModelInfo& model);

  // Returns the i-th request to send; after the last one the first follows again.
  const WorkItem& item(int64_t i) const { return items_[static_cast<size_t>(i) % items_.size()]; }

  size_t size() const { return items_.size(); }
  double mean_tokens() const;

 private:
  std::vector<WorkItem> items_;
};

}  // namespace attendant::client
