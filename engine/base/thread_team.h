// ThreadTeam: the threads that compute a batch together. The project's only OpenMP directive is in
// thread_team.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace attendant {

// A team consists of the calling thread and size() - 1 OpenMP workers, which libgomp keeps alive
// until the calling thread ends. While it keeps more threads than there are CPUs, waiting ones
// sleep almost at once, and a small batch takes twice as long; so code that rarely needs a team
// should call it from a thread that ends. Not thread-safe: always call a team from the same thread.
// Different threads may run different teams at the same time.
class ThreadTeam {
 public:
  // `size` includes the calling thread and is at least 1.
  explicit ThreadTeam(int size);

  int size() const { return size_; }

  // Calls body(worker, item) once for each item in [0, items), on any worker in [0, size()) and in
  // any order. Returns when all calls have returned; their writes are then visible to the caller.
  // Bodies must not call ParallelFor. If one throws, its worker runs no further items, and the
  // exception is rethrown here when all workers are done. Inside a body, oneDNN runs
  // single-threaded and denormals are flushed to zero.
  void ParallelFor(int64_t items, absl::FunctionRef<void(int worker, int64_t item)> body) const;

  // Calls body(worker, share, item) once for each item in [0, items(share)) of each share in [0,
  // size()), under the rules of ParallelFor. Worker w begins with share w and runs its items in
  // order, so data of the same share may still be in its caches from a previous call. A worker that
  // has finished its share runs remaining items of other shares. `items` must be fast and must
  // always return the same number for a share.
  void ParallelForShares(absl::FunctionRef<int64_t(int share)> items,
                         absl::FunctionRef<void(int worker, int share, int64_t item)> body) const;

 private:
  struct alignas(64) NextItem {  // on a cache line of its own
    std::atomic<int64_t> number = 0;
  };

  // Runs work(worker) on worker 0 if `alone`, otherwise on all workers.
  void Run(bool alone, absl::FunctionRef<void(int worker)> work) const;

  int size_;
  std::unique_ptr<NextItem[]> next_;  // one per share; null in a team of one
};

}  // namespace attendant
