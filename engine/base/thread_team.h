// The engine's threads. The only OpenMP directive of the project is in thread_team.cc.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace attendant {

// The calling thread plus size() - 1 OpenMP workers, which libgomp keeps alive between calls. A
// team belongs to the one thread that calls it; two teams may run at the same time on two threads.
class ThreadTeam {
 public:
  // `size` >= 1.
  explicit ThreadTeam(int size) : size_(size) {}

  int size() const { return size_; }

  // Runs body(worker, item) once for each item in [0, items), on any worker in [0, size()), in no
  // promised order, and returns when all are done: what the bodies wrote is then visible to the
  // caller. Bodies must not throw and must not call ParallelFor. Inside a body oneDNN runs
  // single-threaded and denormals are flushed to zero.
  void ParallelFor(int64_t items, absl::FunctionRef<void(int worker, int64_t item)> body) const;

 private:
  int size_;
};

}  // namespace attendant
