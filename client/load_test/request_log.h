// RequestLog, a file with a line of JSON for each request of a load test.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/messages.h"

namespace attendant::client {

// One request. Times count from the start of the step's measurement, and are negative before it.
struct RequestRecord {
  int64_t index = 0;
  bool measured = false;  // false during the warm-up
  absl::Duration intended = absl::ZeroDuration();
  absl::Duration sent = absl::ZeroDuration();
  absl::Duration answered = absl::ZeroDuration();
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t tokens = 0;        // kept tokens of the request
  Execution execution = {};  // of an answer that is ok
};

// Add is thread-safe, the rest is not.
class RequestLog {
 public:
  // Opens the file and empties it. PERMISSION_DENIED or NOT_FOUND: it cannot be written.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(const std::string& path);

  // Lines that are written from now on have this number of a step, from 0.
  void BeginStep(int step) { step_ = step; }

  // Keeps a record for the next Flush, so that no request waits for the file.
  void Add(const RequestRecord& record);

  // Writes the records since the last call.
  void Flush();

  // Flushes, and returns DATA_LOSS if anything could not be written.
  absl::Status Close();

 private:
  RequestLog() = default;

  std::string path_;
  std::ofstream file_;
  int step_ = 0;
  absl::Mutex mutex_;
  std::vector<RequestRecord> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::client
