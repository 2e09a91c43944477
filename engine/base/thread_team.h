// ThreadTeam: the threads that compute a batch together. The only OpenMP directive of the project
// is in thread_team.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace attendant {

// A team consists of the calling thread and size() - 1 OpenMP workers, which libgomp keeps alive
// between calls. One thread alone may call a team; two teams may run at the same time on two
// threads.
class ThreadTeam {
 public:
  // `size` counts the calling thread and is at least 1.
  explicit ThreadTeam(int size);

  int size() const { return size_; }

  // Runs body(worker, item) once for each item in [0, items), on any worker in [0, size()) and in
  // any order, and returns when all calls are done; what the bodies wrote is then visible to the
  // caller. Bodies must not call ParallelFor. If one throws, its worker takes no further item, and
  // the exception is thrown here when all workers are done. Inside a body oneDNN runs
  // single-threaded and denormals are flushed to zero.
  void ParallelFor(int64_t items, absl::FunctionRef<void(int worker, int64_t item)> body) const;

  // Runs body(worker, share, item) once for each item in [0, items(share)) of each share in
  // [0, size()), under the rules of ParallelFor. Worker w begins with share w and takes its items
  // in order, so that it finds in its caches what it did with this share before; a worker that has
  // finished its share takes items that are left of another share. `items` must be quick and must
  // always return one and the same number for a share.
  void ParallelForShares(absl::FunctionRef<int64_t(int share)> items,
                         absl::FunctionRef<void(int worker, int share, int64_t item)> body) const;

 private:
  struct alignas(64) NextItem {  // on a cache line of its own
    std::atomic<int64_t> number = 0;
  };

  // Runs work(worker) on worker 0 if `alone`, else on all workers.
  void Run(bool alone, absl::FunctionRef<void(int worker)> work) const;

  int size_;
  std::unique_ptr<NextItem[]> next_;  // one for each share; null in a team of one
};

}  // namespace attendant
