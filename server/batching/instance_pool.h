// The compute threads, one per instance.
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_runner.h"

namespace attendant::server {

// The threads are named instance-0, instance-1 and so on. Each takes batches from the queue and
// runs them until the queue is closed and empty. An exception from a runner or from `make_runner`
// is a bug, because it would lose jobs; it ends the process (std::terminate).
template <typename T>
class InstancePool {
 public:
  // Starts `instances` threads. `queue` must outlive the pool. make_runner(i) is called on the
  // thread of instance i, so that the runner's memory is first touched there; the runner is
  // destroyed on that thread too. Several threads may call make_runner at the same time. If a
  // thread cannot be started, the constructor closes the queue and throws std::system_error.
  InstancePool(BatchQueue<T>& queue, int instances,
               std::function<std::unique_ptr<BatchRunner<T>>(int)> make_runner) {
    threads_.reserve(static_cast<size_t>(instances));
    try {
      for (int i = 0; i < instances; ++i) {
        threads_.emplace_back([&queue, i, make_runner] {
          pthread_setname_np(pthread_self(), absl::StrCat("instance-", i).c_str());
          RunBatches(queue, *make_runner(i));
        });
      }
    } catch (const std::system_error&) {
      queue.Close();
      Join();
      throw;
    }
  }

  // Waits for the threads to end. The queue must have been closed before.
  ~InstancePool() { Join(); }

  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

 private:
  static void RunBatches(BatchQueue<T>& queue, BatchRunner<T>& runner) {
    while (true) {
      Batch<T> batch = queue.Take();
      if (batch.pieces.empty()) return;
      runner.Run(std::move(batch));
    }
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<std::thread> threads_;
};

}  // namespace attendant::server
