// TestJob, a job whose fate a test can read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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

class TestJob final : public Job {
 public:
  TestJob(Fate& its_fate, int its_id, int64_t its_tokens, int model = 0)
      : fate(its_fate), id(its_id) {
    static const char models[16] = {};
    key.model = &models[model];
    tokens = its_tokens;
    cancelled = {std::shared_ptr<void>(), &fate.cancelled};
  }
  ~TestJob() override {
    fate.destroyed = true;
    if (fate.on_destruction) fate.on_destruction();
  }

  void Fail(const absl::Status& status) override {
    fate.status = status;
    ++fate.failures;
    if (fate.on_failure) fate.on_failure();
  }

  Fate& fate;
  const int id;
};

// The jobs of a batch from a queue of TestJobs.
inline std::vector<TestJob*> JobsOf(const Batch& batch) {
  std::vector<TestJob*> jobs;
  for (const BatchEntry& entry : batch.entries) {
    jobs.push_back(static_cast<TestJob*>(entry.job.get()));
  }
  return jobs;
}

inline std::vector<int> Ids(const Batch& batch) {
  std::vector<int> ids;
  for (const TestJob* job : JobsOf(batch)) ids.push_back(job->id);
  return ids;
}

}  // namespace attendant::server
