#include "engine/base/thread_team.h"

#include <omp.h>

#include <exception>

// libgomp is not built with ThreadSanitizer, which then cannot see that the fork happens before the
// bodies and the bodies before the join. These marks say so; outside TSan builds they are nothing.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#else
static void __tsan_acquire(void*) {}
static void __tsan_release(void*) {}
#endif

namespace attendant {
namespace {

// The objects of the marks. Not local variables, because the parallel region would have to read
// those before its first mark.
char fork, join;

// Denormals are up to a hundred times slower than normal numbers, and encoders do not need them.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(__builtin_ia32_stmxcsr()) {
    constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
    __builtin_ia32_ldmxcsr(saved_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FlushDenormals() {
    constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | kFlushToZero));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_;
#endif
};

}  // namespace

ThreadTeam::ThreadTeam(int size)
    : size_(size), next_(size > 1 ? std::make_unique<NextItem[]>(size) : nullptr) {}

// Not instrumented, because the compiler passes captured variables between the mark and the fork.
__attribute__((no_sanitize("thread"))) void ThreadTeam::Run(
    bool alone, absl::FunctionRef<void(int)> work) const {
  std::atomic<bool> has_thrown = false;
  std::exception_ptr thrown;  // by the first worker that throws
  const auto enter = [&](int worker) {
    // oneDNN asks OpenMP for the number of threads, which is a setting of the calling thread.
    omp_set_num_threads(1);
    const FlushDenormals flush;
    try {
      work(worker);
    } catch (...) {
      if (!has_thrown.exchange(true)) thrown = std::current_exception();
    }
  };
  // Always uses the whole team: libgomp would stop the threads that a smaller team does not use,
  // and start them again later.
  if (alone || size_ == 1) {
    enter(0);
  } else {
    __tsan_release(&fork);
#pragma omp parallel num_threads(size_)
    {
      __tsan_acquire(&fork);
      enter(omp_get_thread_num());
      __tsan_release(&join);
    }
    __tsan_acquire(&join);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void ThreadTeam::ParallelFor(int64_t items, absl::FunctionRef<void(int, int64_t)> body) const {
  if (items <= 0) return;
  std::atomic<int64_t> next = 0;
  Run(items == 1, [&](int worker) {
    for (int64_t item = next.fetch_add(1, std::memory_order_relaxed); item < items;
         item = next.fetch_add(1, std::memory_order_relaxed)) {
      body(worker, item);
    }
  });
}

void ThreadTeam::ParallelForShares(absl::FunctionRef<int64_t(int)> items,
                                   absl::FunctionRef<void(int, int, int64_t)> body) const {
  int64_t all = 0;
  for (int share = 0; share < size_; ++share) all += items(share);
  if (all == 0) return;
  if (all == 1 || size_ == 1) {
    return Run(true, [&](int worker) {
      for (int share = 0; share < size_; ++share) {
        for (int64_t item = 0; item < items(share); ++item) body(worker, share, item);
      }
    });
  }
  for (int share = 0; share < size_; ++share) next_[share].number = 0;
  Run(false, [&](int worker) {
    for (int i = 0; i < size_; ++i) {
      const int share = (worker + i) % size_;
      std::atomic<int64_t>& next = next_[share].number;
      for (int64_t item = next.fetch_add(1, std::memory_order_relaxed); item < items(share);
           item = next.fetch_add(1, std::memory_order_relaxed)) {
        body(worker, share, item);
      }
    }
  });
}

}  // namespace attendant
