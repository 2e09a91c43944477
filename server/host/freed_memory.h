// The memory that the process keeps after it has freed it.
#pragma once

#include <cstdint>
#include <functional>

namespace attendant::server {

// To be called before there are other threads. Limits what the C library's heaps (arenas of malloc)
// keep, since each keeps some of what it ever held:
// - There is one for each two processors instead of 16, which threads share. With one for each
//   processor a server with two of them was no faster.
// - Each gives back free memory at its end that is beyond 4 MiB. By default that is twice the
//   largest block that was ever freed, up to 64 MiB, and malloc_trim does not change this for
//   others than the first heap.
// Blocks of up to kLargestHeapBlock are in heaps, as they come to be by default in a process that
// has freed one of that size.
void LimitHeaps();
inline constexpr int kLargestHeapBlock = 32 << 20;

// Gives back to the system what the process has freed. The C library keeps freed memory below
// whatever is still in use in the same heap: after many requests each heap is as large as it ever
// was, and requests are refused for memory that nobody uses. One thread at a time.
class FreedMemory {
 public:
  // Both are replaced in tests only. `resident` is the memory of the process in bytes.
  explicit FreedMemory(std::function<int64_t()> resident, std::function<void()> give_back = Trim);

  struct Calls {
    int64_t under_way = 0;
    int64_t begun = 0;  // since the process started
  };

  // Gives memory back if the process has grown since the last time. With no call under way it then
  // does so each time until there is nothing to give and no call has begun in between, because what
  // calls and their connections still held is freed later, which is no growth. What is given back
  // costs page faults when it is used again, so a process with calls under way has to have grown by
  // much.
  void GiveBackIfGrown(Calls calls);

  // Gives it back in any case.
  void GiveBack();

 private:
  static void Trim();

  const std::function<int64_t()> resident_;
  const std::function<void()> give_back_;
  int64_t kept_ = 0;        // bytes after the last time, or less
  int64_t begun_ = 0;       // calls that had begun the last time
  bool unsettled_ = false;  // whether more may be freed without growth
};

}  // namespace attendant::server
