// Limits the freed memory that the process keeps.
#pragma once

#include <cstdint>
#include <functional>

namespace attendant::server {

// Call before other threads start. Limits the memory that the heaps of the C library (malloc
// arenas) keep, because each keeps some of its peak:
// - Threads share one heap per two processors, instead of 16 per two. One per processor was no
//   faster on a server with two.
// - Each heap returns free memory beyond 4 MiB at its end. The default is twice the largest block
//   ever freed, up to 64 MiB, and malloc_trim only changes it for the first heap.
// Blocks of up to kLargestHeapBlock are in heaps, which is the default in a process that has freed
// a block of that size.
void LimitHeaps();
inline constexpr int kLargestHeapBlock = 32 << 20;

// Returns freed memory to the system. The C library keeps freed memory below anything still in use
// in the same heap: after many requests, each heap stays at its peak, and requests are refused for
// memory that is unused. Not thread-safe.
class FreedMemory {
 public:
  // Tests replace both. `resident` returns the memory of the process in bytes.
  explicit FreedMemory(std::function<int64_t()> resident, std::function<void()> give_back = Trim);

  struct Calls {
    int64_t under_way = 0;
    int64_t begun = 0;  // since the process started
  };

  // Returns memory if the process has grown since it last did. Without calls in progress, it then
  // does so each time until there is nothing to return and no call has begun in between, because
  // the remaining memory of calls and connections is freed later, without growth. Returned memory
  // costs page faults when it is used again, so that with calls in progress the process must have
  // grown by much.
  void GiveBackIfGrown(Calls calls);

  // Returns memory unconditionally.
  void GiveBack();

 private:
  static void Trim();

  const std::function<int64_t()> resident_;
  const std::function<void()> give_back_;
  int64_t kept_ = 0;        // bytes after memory was last returned, or fewer
  int64_t begun_ = 0;       // calls begun by the last GiveBackIfGrown
  bool unsettled_ = false;  // whether more may be freed without growth
};

}  // namespace attendant::server
