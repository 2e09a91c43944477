#include "server/rest/body_buffer.h"

#include <algorithm>
#include <cstdlib>
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
    if (size_ == capacity_) {
      const int64_t capacity = NextBlock(capacity_);
      void* memory = std::malloc(static_cast<size_t>(capacity));
      if (memory == nullptr) throw std::bad_alloc();
      grpc::Slice block(memory, static_cast<size_t>(capacity), std::free);
      blocks_.push_back(std::move(block));
      capacity_ += capacity;
    }
    const size_t left = static_cast<size_t>(capacity_ - size_);
    const size_t step = std::min(bytes.size(), left);
    std::memcpy(const_cast<uint8_t*>(blocks_.back().end()) - left, bytes.data(), step);
    size_ += static_cast<int64_t>(step);
    bytes.remove_prefix(step);
  }
}

MessageSlices BodyBuffer::Take() {
  MessageSlices slices = std::move(blocks_);
  if (size_ < capacity_) {
    grpc::Slice& last = slices.back();
    last = last.sub(0, last.size() - static_cast<size_t>(capacity_ - size_));
  }
  Clear();
  return slices;
}

}  // namespace attendant::server
