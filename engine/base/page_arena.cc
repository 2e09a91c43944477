#include "engine/base/page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "engine/base/rounding.h"

namespace attendant {
namespace {

constexpr int64_t kAlignment = 64;
// Of kernels with pages of 4 KiB. Those with pages of 16 or 64 KiB, as arm64 may have, have huge
// pages of 32 or 512 MiB, which chunks seldom fill; there, the pages themselves are large.
constexpr int64_t kHugePage = int64_t{2} << 20;
// Large compared with a huge page, of which the end of a chunk may waste most, and with the weights
// of most layers.
constexpr int64_t kChunkBytes = int64_t{32} << 20;

std::shared_ptr<char> AllocateChunk(int64_t bytes) {
  void* memory = std::aligned_alloc(kHugePage, static_cast<size_t>(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  // Fails in kernels without huge pages. The memory is usable nevertheless.
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return {static_cast<char*>(memory), [](char* chunk) { std::free(chunk); }};
}

}  // namespace

std::shared_ptr<char> PageArena::Allocate(int64_t bytes) {
  const int64_t size = RoundUp(std::max<int64_t>(bytes, 1), kAlignment);
  if (chunk_->size - chunk_->used < size) {
    const int64_t chunk_bytes = RoundUp(std::max(size, kChunkBytes), kHugePage);
    *chunk_ = {AllocateChunk(chunk_bytes), chunk_bytes, 0};
  }
  char* const block = chunk_->memory.get() + chunk_->used;
  chunk_->used += size;
  return {chunk_->memory, block};
}

}  // namespace attendant
