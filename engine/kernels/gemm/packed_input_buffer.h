// PackedInputBuffer: the memory of packed GEMM inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/linear_rows.h"

namespace attendant {

// A view of packed rows of x. Row r of block b (see PanelShape) is dense and starts at data + b *
// block_stride + r * row_stride.
struct PackedInputView {
  const char* data;
  int64_t row_stride;    // bytes
  int64_t block_stride;  // bytes
  const float* scales;   // one per row; only for int8

  const char* row(int64_t block, int64_t r) const {
    return data + block * block_stride + r * row_stride;
  }
};

// A buffer that holds one packed input at a time, which PackedInput writes and reads. Empty for
// kF32, whose products read x itself. Not thread-safe, except that workers may write different
// rows.
class PackedInputBuffer {
 public:
  explicit PackedInputBuffer(int workers) : scratch_(workers) {}
  // Not movable: PackedInput refers to it.
  PackedInputBuffer(const PackedInputBuffer&) = delete;
  PackedInputBuffer& operator=(const PackedInputBuffer&) = delete;

  // Reserves memory for `rows` rows of this layout.
  void Reserve(const PackedInputLayout& layout, int64_t rows);

  // Begins a packed input of `rows` rows, with zeros up to PaddedRows(rows). It replaces the
  // previous one.
  PackedInput Begin(const PackedInputLayout& layout, int64_t rows);

  // Likewise, in the layout that was reserved for this number of columns. Returns an empty view if
  // none was reserved for at least PaddedRows(rows) rows.
  PackedInput Begin(int64_t in, int64_t rows);

  // The bytes of the buffer. Excludes the workers' scratch memory, which does not grow with the
  // rows.
  int64_t bytes() const { return data_.bytes() + scales_.bytes(); }

 private:
  friend class PackedInput;

  struct Reserved {
    PackedInputLayout layout;
    int64_t rows;
  };

  int64_t row_stride() const;
  char* Place(int64_t block, int64_t r) {
    return data_.data() + block * block_stride_ + r * row_stride();
  }

  AlignedBuffer<char> data_;
  AlignedBuffer<float> scales_;                // for int8
  std::vector<AlignedBuffer<float>> scratch_;  // a row per worker, for int8
  std::vector<Reserved> reserved_;             // a few, one per input width of the model
  PackedInputLayout layout_ = {};
  int64_t block_stride_ = 0;
  int64_t number_ = 0;  // of packed inputs that were begun
};

}  // namespace attendant
