// BodyBuffer, a request body while it arrives.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

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
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<char, Free> memory;
    int64_t capacity = 0;
    int64_t size = 0;
  };

  int64_t NextBlock(int64_t capacity) const;

  int64_t length_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace attendant::server
