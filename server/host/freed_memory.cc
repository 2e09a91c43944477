#include "server/host/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace attendant::server {
namespace {

// 64 KiB with pages of 4 KiB. A fixed size could be that of a single page, which comes and goes.
int64_t Worthwhile() {
  static const int64_t bytes = 16 * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
constexpr int64_t kWorthwhileIfBusy = int64_t{32} << 20;

}  // namespace

void LimitHeaps() {
  mallopt(M_ARENA_MAX, std::max(1, static_cast<int>(std::thread::hardware_concurrency() / 2)));
  // With 256 KiB, the pages of each 1.5 MiB message came from the system, which cost a tenth of the
  // throughput with single attention layers; 4 MiB had no measurable cost.
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
}

FreedMemory::FreedMemory(std::function<int64_t()> resident, std::function<void()> give_back)
    : resident_(std::move(resident)), give_back_(std::move(give_back)) {}

void FreedMemory::GiveBackIfGrown(Calls calls) {
  const int64_t now = resident_();
  kept_ = std::min(kept_, now);
  const bool busy = calls.under_way > 0;
  // Between two calls of a busy process none may be under way either.
  const bool quiet = calls.begun == std::exchange(begun_, calls.begun) && !busy;
  const bool again = unsettled_ && !busy;
  if (!again && now < kept_ + (busy ? kWorthwhileIfBusy : Worthwhile())) return;
  GiveBack();
  unsettled_ = !quiet || kept_ + Worthwhile() <= now;
}

void FreedMemory::GiveBack() {
  give_back_();
  kept_ = resident_();
  unsettled_ = true;
}

void FreedMemory::Trim() { malloc_trim(0); }

}  // namespace attendant::server
