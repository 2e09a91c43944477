// Verifier, which compares each answer of a load test with the one that its request got alone.
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
  // Sends every request of the workload once, one after the other, so that none shares a batch with
  // another one of this client, and keeps the answers. Returns the first error.
  static absl::StatusOr<std::unique_ptr<Verifier>> Make(const Client& client,
                                                        const CallOptions& call,
                                                        const Workload& workload);

  // Returns the execution of an answer to the workload's request `index`, or its error; DATA_LOSS
  // if it does not have the bits of the first one.
  absl::StatusOr<Execution> Check(int64_t index, const absl::StatusOr<RawAnswer>& answer);

  // Returns how many answers, those of the warm-up too, have differed since the last call.
  int64_t TakeMismatches() { return mismatches_.exchange(0); }

 private:
  Verifier() = default;

  std::vector<std::string> expected_;
  std::atomic<int64_t> mismatches_ = 0;
};

}  // namespace attendant::client
