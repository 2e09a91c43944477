// BodyBuffer, a request's body while it arrives.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "server/wire/payload.h"

namespace attendant::server {

// In blocks that are never moved, so that nothing is copied twice and no memory is taken before
// bytes come. Not thread-safe.
class BodyBuffer {
 public:
  // `length` is the declared one, or the most that is accepted.
  explicit BodyBuffer(int64_t length) : length_(length) {}

  int64_t size() const { return size_; }
  // Returns the bytes of memory that it has once `bytes` more have come.
  int64_t CapacityFor(int64_t bytes) const;
  // The bytes fit in what is left of the length. Throws std::bad_alloc.
  void Append(std::string_view bytes);
  // Returns the bytes, and forgets them.
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
