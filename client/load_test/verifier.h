// Verifier, which compares each response of a load test with the response to the same request by
// itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/load_requests/workload.h"

namespace attendant::client {

// Thread-safe.
class Verifier {
 public:
  // Sends every request of the workload once, one after the other, so that no two share a batch,
  // and keeps the responses. Returns the first error.
  static absl::StatusOr<std::unique_ptr<Verifier>> Make(const Client& client,
                                                        const CallOptions& call,
                                                        const Workload& workload);

  // Returns the execution of a response to the workload's request `index`, or its error; DATA_LOSS
  // if its bits differ from the first response.
  absl::StatusOr<Execution> Check(int64_t index, const absl::StatusOr<RawAnswer>& answer);

  // Returns the number of differing responses since the last call, including the warm-up.
  int64_t TakeMismatches() { return mismatches_.exchange(0); }

 private:
  Verifier() = default;

  std::vector<std::string> expected_;
  std::atomic<int64_t> mismatches_ = 0;
};

}  // namespace attendant::client
