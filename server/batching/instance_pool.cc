#include "server/batching/instance_pool.h"

#include <pthread.h>

#include <system_error>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

void RunBatches(BatchQueue& queue, const RunBatch& run) {
  while (true) {
    const Batch batch = queue.Take();
    if (batch.entries.empty()) return;
    run(batch);
  }
}

}  // namespace

InstancePool::InstancePool(BatchQueue& queue, int instances,
                           const std::function<RunBatch(int)>& make_runner) {
  threads_.reserve(static_cast<size_t>(instances));
  try {
    for (int i = 0; i < instances; ++i) {
      threads_.emplace_back([&queue, i, make_runner] {
        pthread_setname_np(pthread_self(), absl::StrCat("instance-", i).c_str());
        RunBatches(queue, make_runner(i));
      });
    }
  } catch (const std::system_error&) {
    queue.Close();
    Join();
    throw;
  }
}

void InstancePool::Join() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace attendant::server
