#include "server/rest/body_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace attendant::server {
namespace {

constexpr int64_t kLeastBlock = int64_t{64} << 10, kMostBlock = int64_t{4} << 20;

}  // namespace

// As large as all before it, so that there are few blocks.
int64_t BodyBuffer::NextBlock(int64_t capacity) const {
  return std::min(std::clamp(capacity, kLeastBlock, kMostBlock), length_ - capacity);
}

int64_t BodyBuffer::CapacityFor(int64_t bytes) const {
  int64_t capacity = capacity_;
  while (capacity < size_ + bytes && capacity < length_) capacity += NextBlock(capacity);
  return capacity;
}

void BodyBuffer::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (blocks_.empty() || blocks_.back().size == blocks_.back().capacity) {
      const int64_t capacity = NextBlock(capacity_);
      Block block = {{}, capacity, 0};
      block.memory.reset(static_cast<char*>(std::malloc(static_cast<size_t>(capacity))));
      if (block.memory == nullptr) throw std::bad_alloc();
      blocks_.push_back(std::move(block));
      capacity_ += capacity;
    }
    Block& block = blocks_.back();
    const size_t step = std::min(bytes.size(), static_cast<size_t>(block.capacity - block.size));
    std::memcpy(block.memory.get() + block.size, bytes.data(), step);
    block.size += static_cast<int64_t>(step);
    size_ += static_cast<int64_t>(step);
    bytes.remove_prefix(step);
  }
}

MessageSlices BodyBuffer::Take() {
  MessageSlices slices;
  slices.reserve(blocks_.size());
  for (Block& block : blocks_) {
    const auto size = static_cast<size_t>(block.size);
    slices.emplace_back(block.memory.release(), size, std::free);
  }
  Clear();
  return slices;
}

}  // namespace attendant::server
