// The compute threads, one per instance.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "server/batching/batch_queue.h"
#include "server/batching/batch_runner.h"

namespace attendant::server {

// The threads are named instance-0, instance-1 and so on. Each takes batches from the queue and
// runs them until the queue is closed and empty. An exception from a runner or from `make_runner`
// is a bug, because it would lose jobs; it ends the process (std::terminate).
class InstancePool {
 public:
  // Starts `instances` threads. `queue` must outlive the pool. make_runner(i) is called on the
  // thread of instance i, so that the runner's memory is first touched there; the runner is
  // destroyed on that thread too. Several threads may call make_runner at the same time. If a
  // thread cannot be started, the constructor closes the queue and throws std::system_error.
  InstancePool(BatchQueue& queue, int instances,
               std::function<std::unique_ptr<BatchRunner>(int)> make_runner);

  // Waits for the threads to end. The queue must have been closed before.
  ~InstancePool();

  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

 private:
  void Join();

  std::vector<std::thread> threads_;
};

}  // namespace attendant::server
