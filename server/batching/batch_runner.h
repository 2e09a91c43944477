// The interface through which an instance computes a batch.
#pragma once

#include <memory>
#include <vector>

#include "server/batching/job.h"

namespace attendant::server {

// Each instance has one, and only the thread of that instance uses it.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;

  // Computes and answers every job of `batch`, which is not empty and whose jobs have the same key.
  // A job that cannot be computed is failed, so that every caller gets an answer. Must not throw.
  virtual void Run(std::vector<std::unique_ptr<Job>> batch) = 0;
};

}  // namespace attendant::server
