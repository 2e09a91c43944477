// A library to preload into attendant-server. It counts the bytes that the whole program copies by
// memcpy and its like.
#undef _FORTIFY_SOURCE  // which makes calls of the functions below one of another
#include <strings.h>

#include <cstring>

#include "tests/integration/copy_counts.h"
#include "tests/integration/shared_with_server.h"

namespace {

using attendant::server::CopyCounts;
using attendant::server::MapFromEnvironment;

CopyCounts* counts = nullptr;  // null: none are wanted

__attribute__((constructor)) void Begin() { counts = MapFromEnvironment<CopyCounts>(); }

// bcopy does what memmove does, and nothing calls it.
void* CountAndCopy(void* to, const void* from, size_t bytes) {
  if (counts != nullptr && static_cast<int64_t>(bytes) >= CopyCounts::kLeastBytes) {
    counts->bytes += static_cast<int64_t>(bytes);
  }
  bcopy(from, to, bytes);
  return to;
}

}  // namespace

extern "C" {
void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  return CountAndCopy(to, from, bytes);
}
void* memmove(void* to, const void* from, size_t bytes) noexcept {
  return CountAndCopy(to, from, bytes);
}
// Fortified code calls these. The last argument, the size of the target, is not checked here.
void* __memcpy_chk(void* to, const void* from, size_t bytes, size_t) noexcept {
  return CountAndCopy(to, from, bytes);
}
void* __memmove_chk(void* to, const void* from, size_t bytes, size_t) noexcept {
  return CountAndCopy(to, from, bytes);
}
}
