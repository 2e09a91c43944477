// BodyBuffer, a request body while it arrives.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/wire/payload.h"

namespace attendant::server {

// Stores blocks that never move, so that no byte is copied twice and no memory is taken before
// bytes arrive. Not thread-safe.
class BodyBuffer {
 public:
  // `length` is the declared length, or the maximum.
  explicit BodyBuffer(int64_t length) : length_(length) {}

  int64_t size() const { return size_; }
  // Returns the capacity in bytes after appending `bytes` more.
  int64_t CapacityFor(int64_t bytes) const;
  // The bytes must fit into the remaining length. Throws std::bad_alloc.
  void Append(std::string_view bytes);
  // Returns the bytes and empties the buffer.
  MessageSlices Take();
  void Clear() { *this = BodyBuffer(length_); }

 private:
  int64_t NextBlock(int64_t capacity) const;

  int64_t length_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;  // of all blocks
  MessageSlices blocks_;  // only the last one is not full
};

}  // namespace attendant::server
