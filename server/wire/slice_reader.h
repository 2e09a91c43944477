// Sequential reader of a message in several slices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "server/wire/payload.h"

namespace attendant::server {

// Starts at the first byte of `slices`, which must outlive the reader. Do not read beyond size().
class SliceReader {
 public:
  explicit SliceReader(const MessageSlices& slices) : slices_(slices), size_(ByteSize(slices)) {}

  int64_t size() const { return size_; }
  int64_t position() const { return position_; }

  uint8_t ReadByte() {
    SkipEndOfSlice();
    const uint8_t byte = slices_[slice_].begin()[in_slice_];
    Advance(1);
    return byte;
  }

  void Skip(int64_t count) {
    while (count > 0) count -= Advance(std::min(count, Contiguous()));
  }

  void AppendTo(std::string& target, int64_t count) {
    while (count > 0) {
      const int64_t step = std::min(count, Contiguous());
      target.append(reinterpret_cast<const char*>(slices_[slice_].begin()) + in_slice_,
                    static_cast<size_t>(step));
      count -= Advance(step);
    }
  }

 private:
  void SkipEndOfSlice() {
    while (in_slice_ == static_cast<int64_t>(slices_[slice_].size())) {
      ++slice_;
      in_slice_ = 0;
    }
  }

  // Returns how many bytes, at least one, can be read from the current slice.
  int64_t Contiguous() {
    SkipEndOfSlice();
    return static_cast<int64_t>(slices_[slice_].size()) - in_slice_;
  }

  int64_t Advance(int64_t count) {
    in_slice_ += count;
    position_ += count;
    return count;
  }

  const MessageSlices& slices_;
  int64_t size_ = 0;
  int64_t position_ = 0;
  size_t slice_ = 0;
  int64_t in_slice_ = 0;
};

}  // namespace attendant::server
