// Completes the jobs of computed batches, while their instance goes on with its next batch.
#pragma once

#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/batch_report.h"
#include "server/execution/entry_run.h"

namespace attendant::server {

// A batch whose results are out of the engine's buffers.
struct ComputedBatch {
  std::vector<EntryRun> entries;  // those that have ended already are passed over
  BatchReport report;             // finished

  // Ends the entries, which serializes their responses and starts to send them, and then records
  // the batch. A job that cannot be finished fails alone.
  void Complete() noexcept;
};

// A thread that completes one batch at a time, for one other thread, which owns this. To serialize
// responses and to hand them to the transport takes longer than to compute them if a model is
// small.
class BatchCompleter {
 public:
  // Without a thread, if none can be started.
  BatchCompleter();
  // Returns when all batches are complete.
  ~BatchCompleter();
  BatchCompleter(const BatchCompleter&) = delete;
  BatchCompleter& operator=(const BatchCompleter&) = delete;

  // Hands `batch` to the thread; completes it here if the thread still has the one before, so that
  // responses never pile up. Allocates nothing.
  void Complete(ComputedBatch batch) noexcept;

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return batch_ || stopped_; }

  absl::Mutex mutex_;
  std::optional<ComputedBatch> batch_ ABSL_GUARDED_BY(mutex_);  // to be taken by the thread
  bool free_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has no batch, nor one to take
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
