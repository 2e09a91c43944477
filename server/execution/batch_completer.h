// Completes the jobs of computed batches while their instance runs the next batch.
#pragma once

#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/batch_report.h"
#include "server/execution/entry_run.h"

namespace attendant::server {

// A batch with its results copied out of the engine's buffers.
struct ComputedBatch {
  std::vector<EntryRun> entries;  // entries that have ended are skipped
  BatchReport report;             // finished

  // Completes the entries, which serializes their responses and starts to send them, and records
  // the batch. A job that cannot be completed fails without affecting others.
  void Complete() noexcept;
};

// A thread that completes one batch at a time for the thread that owns this object. For a small
// model, serializing and sending responses takes longer than computing them.
class BatchCompleter {
 public:
  // Works without a thread if none can be started.
  BatchCompleter();
  // Waits until all batches are complete.
  ~BatchCompleter();
  BatchCompleter(const BatchCompleter&) = delete;
  BatchCompleter& operator=(const BatchCompleter&) = delete;

  // Passes `batch` to the thread, or completes it here if the thread is busy, so that responses
  // never pile up. Does not allocate.
  void Complete(ComputedBatch batch) noexcept;

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return batch_ || stopped_; }

  absl::Mutex mutex_;
  std::optional<ComputedBatch> batch_ ABSL_GUARDED_BY(mutex_);  // waiting for the thread
  bool free_ ABSL_GUARDED_BY(mutex_) = false;  // the thread is idle and has no batch waiting
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
