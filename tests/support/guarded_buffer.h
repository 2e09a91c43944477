// GuardedBytes and GuardedBuffer, memory that faults at the first byte that is read or written
// beyond its end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace attendant {

// `size` bytes, at first zeros, that end where an inaccessible page begins. Because the end is
// fixed, the beginning has no particular alignment.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }

 private:
  void* mapping_;
  size_t mapped_;
  std::byte* data_;
};

// GuardedBytes for elements of a trivial type T.
template <typename T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t size) : bytes_(size * sizeof(T)), size_(size) {}

  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) const { return data()[i]; }
  absl::Span<T> span() const { return {data(), static_cast<size_t>(size_)}; }

 private:
  GuardedBytes bytes_;
  int64_t size_;
};

}  // namespace attendant
