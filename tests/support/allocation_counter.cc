#include "tests/support/allocation_counter.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace attendant::test_support {
namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

bool IsOneDnn(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "dnnl") != nullptr;
}

void Count(const void* caller) {
  if (counting && !IsOneDnn(caller)) ++allocations;
}

}  // namespace

AllocationCounter::AllocationCounter() {
  allocations = 0;
  counting = true;
}
AllocationCounter::~AllocationCounter() { counting = false; }
int64_t AllocationCounter::count() const { return allocations; }

}  // namespace attendant::test_support

void* operator new(size_t bytes) {
  attendant::test_support::Count(__builtin_return_address(0));
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  attendant::test_support::Count(__builtin_return_address(0));
  return std::malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  attendant::test_support::Count(__builtin_return_address(0));
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
