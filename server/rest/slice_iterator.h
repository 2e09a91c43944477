// SliceIterator, over the characters of a text that lies in several slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "server/wire/payload.h"

namespace attendant::server {

// Both ends of a range are of the same slices, which must outlive them.
class SliceIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  SliceIterator() = default;
  // At byte `position` of the slices. All of them have bytes.
  SliceIterator(const MessageSlices& slices, int64_t position)
      : slices_(&slices), position_(position) {
    while (slice_ < slices.size() && position >= static_cast<int64_t>(slices[slice_].size())) {
      position -= static_cast<int64_t>(slices[slice_++].size());
    }
    if (slice_ == slices.size()) return;
    at_ = Begin() + position;
    end_ = Begin() + slices[slice_].size();
  }

  reference operator*() const { return *at_; }
  SliceIterator& operator++() {
    ++position_;
    if (++at_ == end_ && ++slice_ < slices_->size()) {
      at_ = Begin();
      end_ = at_ + (*slices_)[slice_].size();
    }
    return *this;
  }
  SliceIterator operator++(int) {
    const SliceIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const SliceIterator& other) const { return position_ == other.position_; }

 private:
  const char* Begin() const { return reinterpret_cast<const char*>((*slices_)[slice_].begin()); }

  const MessageSlices* slices_ = nullptr;
  size_t slice_ = 0;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  int64_t position_ = 0;
};

}  // namespace attendant::server
