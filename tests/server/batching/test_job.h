// TestJob, a job whose fate a test can read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/batching/job.h"

namespace attendant::server {

// The fate of a job, which must outlive the job.
struct Fate {
  std::atomic<bool> cancelled{false};
  std::atomic<int> failures{0};
  std::atomic<int> runs{0};
  std::atomic<bool> destroyed{false};
  absl::Status status;  // the status of the last failure
};

class TestJob final : public Job {
 public:
  TestJob(Fate& fate, int job_id, int64_t job_tokens, int model = 0) : id(job_id), fate_(fate) {
    static const char models[16] = {};
    key.model = &models[model];
    tokens = job_tokens;
  }
  ~TestJob() override { fate_.destroyed = true; }

  bool cancelled() const override { return fate_.cancelled; }
  void Fail(const absl::Status& status) override {
    fate_.status = status;
    ++fate_.failures;
  }
  void Run() { ++fate_.runs; }

  const int id;

 private:
  Fate& fate_;
};

inline std::vector<int> Ids(const std::vector<std::unique_ptr<Job>>& batch) {
  std::vector<int> ids;
  for (const auto& job : batch) ids.push_back(static_cast<const TestJob&>(*job).id);
  return ids;
}

}  // namespace attendant::server
