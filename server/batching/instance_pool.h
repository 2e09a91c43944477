// The compute threads, one per instance.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "server/batching/batch_queue.h"

namespace attendant::server {

// Computes and completes the jobs of a non-empty batch. Jobs that cannot be computed must be
// failed, so that every client gets a response.
using RunBatch = std::function<void(const Batch&)>;

// The threads are named instance-0, instance-1 and so on. Each takes batches from the queue and
// runs them until the queue is closed and empty. An exception from a RunBatch or from `make_runner`
// is a bug that would lose jobs, and ends the process (std::terminate).
class InstancePool {
 public:
  // Starts `instances` threads. `queue` must outlive the pool. make_runner(i) runs on the thread of
  // instance i, concurrently with others, so that the memory of its result is first touched there;
  // the result is used and destroyed on that thread. If a thread cannot be started, the constructor
  // closes the queue and throws std::system_error.
  InstancePool(BatchQueue& queue, int instances, const std::function<RunBatch(int)>& make_runner);

  // Waits for the threads to end. Close the queue first.
  ~InstancePool() { Join(); }

  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

 private:
  void Join();

  std::vector<std::thread> threads_;
};

}  // namespace attendant::server
