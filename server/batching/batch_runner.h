// The interface through which an instance computes a batch.
#pragma once

#include "server/batching/batch_queue.h"

namespace attendant::server {

// Each instance has one, and only the thread of that instance uses it.
template <typename T>
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;

  // Computes and answers every piece of `batch`, which is not empty. A job that cannot be computed
  // is failed, so that every caller gets an answer. Must not throw.
  virtual void Run(Batch<T> batch) = 0;
};

}  // namespace attendant::server
