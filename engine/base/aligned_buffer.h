// AlignedBuffer and SharedBuffer: arrays that are aligned for SIMD vectors.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace attendant {

// Owns an array of `size` elements of a trivial type T, aligned to 64 bytes. The content starts
// undefined, and pages that were never written take no memory. Move-only. The constructor throws
// std::bad_alloc; callers check untrusted sizes first.
template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) : size_(size) {
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, bytes == 0 ? 64 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    data_.reset(static_cast<T*>(memory));
  }

  // Grows to at least `size` elements. If it grows, the content becomes undefined.
  void GrowTo(int64_t size) {
    if (size_ < size) *this = AlignedBuffer(size);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// An immutable buffer, such as a weight. Copies share the elements, which are freed with the last
// copy. Thread-safe.
template <typename T>
class SharedBuffer {
 public:
  SharedBuffer() : SharedBuffer(AlignedBuffer<T>()) {}
  SharedBuffer(AlignedBuffer<T> buffer)  // NOLINT(google-explicit-constructor)
      : buffer_(std::make_shared<const AlignedBuffer<T>>(std::move(buffer))) {}

  const T* data() const { return buffer_->data(); }
  int64_t size() const { return buffer_->size(); }
  int64_t bytes() const { return buffer_->bytes(); }
  const T& operator[](int64_t i) const { return (*buffer_)[i]; }

 private:
  std::shared_ptr<const AlignedBuffer<T>> buffer_;
};

}  // namespace attendant
