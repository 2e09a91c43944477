// TestJob, a job whose fate a test can read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/batching/batch_queue.h"
#include "server/batching/job.h"

namespace attendant::server {

// The fate of a job, which must outlive the job.
struct Fate {
  std::atomic<bool> cancelled{false};
  std::atomic<int> failures{0};
  std::atomic<int> runs{0};
  std::atomic<bool> destroyed{false};
  absl::Status status;  // the status of the last failure
  // Called when the job is failed, and when it is destroyed; or empty.
  std::function<void()> on_failure = {};
  std::function<void()> on_destruction = {};
};

class TestJob {
 public:
  TestJob(Fate& fate, int id, int64_t tokens, int model = 0)
      : work_(std::make_shared<Work>(fate, id)) {
    static const char models[16] = {};
    work_->key.model = &models[model];
    work_->tokens = tokens;
    work_->cancelled = {std::shared_ptr<void>(), &fate.cancelled};
  }

  JobInfo& info() const { return *work_; }
  void Fail(const absl::Status& status) const {
    Fate& fate = work_->fate;
    fate.status = status;
    ++fate.failures;
    if (fate.on_failure) fate.on_failure();
  }
  void Run() const { ++work_->fate.runs; }
  int id() const { return work_->id; }

 private:
  struct Work : JobInfo {
    Work(Fate& its_fate, int its_id) : fate(its_fate), id(its_id) {}
    ~Work() {
      fate.destroyed = true;
      if (fate.on_destruction) fate.on_destruction();
    }
    Fate& fate;
    const int id;
  };

  std::shared_ptr<Work> work_;
};

using TestQueue = BatchQueue<TestJob>;

inline std::vector<int> Ids(const Batch<TestJob>& batch) {
  std::vector<int> ids;
  for (const auto& piece : batch.pieces) ids.push_back(piece.job.id());
  return ids;
}

}  // namespace attendant::server
