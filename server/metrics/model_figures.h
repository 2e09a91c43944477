// Totals of the requests and batches of each model, for clients of the Open Inference Protocol.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

struct RequestRecord;
struct BatchRecord;

// Times of batches count once for each of their requests.
struct ModelFigures {
  int64_t answered = 0;  // requests
  absl::Duration answered_time;
  int64_t failed = 0;  // after validation
  absl::Duration failed_time;
  absl::Duration queued;
  absl::Duration copied_in;
  absl::Duration computed;
  absl::Duration copied_out;
  int64_t sequences = 0;  // of answered requests
  int64_t batches = 0;
  absl::Time last = absl::InfinitePast();  // end of the latest batch
};

// Thread-safe.
class FiguresByModel {
 public:
  // Ignores requests without a model or sequences, because they were not computed.
  void Add(const RequestRecord& record);
  void Add(const BatchRecord& record);
  ModelFigures Find(const std::string& model) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, ModelFigures> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
