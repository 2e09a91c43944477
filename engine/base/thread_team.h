// The engine's threads. The only OpenMP directive of the project is in thread_team.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace attendant {

// The calling thread plus size() - 1 OpenMP workers, which libgomp keeps alive between calls. A
// team belongs to the one thread that calls it; two teams may run at the same time on two threads.
class ThreadTeam {
 public:
  // `size` >= 1.
  explicit ThreadTeam(int size);

  int size() const { return size_; }

  // Runs body(worker, item) once for each item in [0, items), on any worker in [0, size()), in no
  // promised order, and returns when all are done: what the bodies wrote is then visible to the
  // caller. Bodies must not throw and must not call ParallelFor. Inside a body oneDNN runs
  // single-threaded and denormals are flushed to zero.
  void ParallelFor(int64_t items, absl::FunctionRef<void(int worker, int64_t item)> body) const;

  // The same for size() shares of items: body(worker, share, item) once for each item in [0,
  // items(share)) of each share in [0, size()). Worker w begins with share w, in order, so that it
  // finds in its caches what it did with the same share before; a worker whose share is done takes
  // what is left of another's. `items` is quick, and always says the same of a share.
  void ParallelForShares(absl::FunctionRef<int64_t(int share)> items,
                         absl::FunctionRef<void(int worker, int share, int64_t item)> body) const;

 private:
  struct alignas(64) NextItem {  // a cache line each
    std::atomic<int64_t> number = 0;
  };

  // On one worker if `alone`, else on all.
  void Run(bool alone, absl::FunctionRef<void(int worker)> work) const;

  int size_;
  std::unique_ptr<NextItem[]> next_;  // of each share; null in a team of one
};

}  // namespace attendant
