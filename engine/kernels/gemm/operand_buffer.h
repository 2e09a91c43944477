// Where the operands of products lie.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/compute_type.h"
#include "engine/kernels/gemm/linear_input.h"

namespace attendant {

// How a linear layer reads x: in blocks of `k_block` columns, each in all the parts of its type.
struct OperandLayout {
  ComputeMode mode;
  int64_t in;
  int64_t k_block;

  friend bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

// x as the products read it: row r of block b (see PanelShape) is dense at data + b block_stride +
// r row_stride.
struct Operand {
  const char* data;
  int64_t row_stride;    // bytes
  int64_t block_stride;  // bytes
  const float* scales;   // one for each row, of int8

  const char* row(int64_t block, int64_t r) const {
    return data + block * block_stride + r * row_stride;
  }
};

// Room for one operand at a time, which the workers of a team write. Nothing is held of kF32, whose
// products read x as it is.
class OperandBuffer {
 public:
  explicit OperandBuffer(int workers) : scratch_(workers) {}
  // PreparedOperand has its address.
  OperandBuffer(const OperandBuffer&) = delete;
  OperandBuffer& operator=(const OperandBuffer&) = delete;

  // Grows to what `rows` rows of that layout take.
  void Reserve(const OperandLayout& layout, int64_t rows);

  // Takes up an operand of `rows` rows, and zeros up to PaddedRows(rows), in the place of the one
  // before.
  PreparedOperand Begin(const OperandLayout& layout, int64_t rows);

  // See PreparedOperand.
  void Write(int worker, int64_t row, int64_t column, absl::Span<const float> x);

  const OperandLayout& layout() const { return layout_; }
  // How many operands were taken up so far.
  int64_t number() const { return number_; }
  Operand Rows(int64_t first) const;
  // But for what the workers have, which does not grow with the rows.
  int64_t bytes() const { return data_.bytes() + scales_.bytes(); }

 private:
  int64_t row_stride() const;
  char* Place(int64_t block, int64_t r) {
    return data_.data() + block * block_stride_ + r * row_stride();
  }

  AlignedBuffer<char> data_;
  AlignedBuffer<float> scales_;                // of int8
  std::vector<AlignedBuffer<float>> scratch_;  // a row for each worker, of int8
  OperandLayout layout_ = {};
  int64_t block_stride_ = 0;
  int64_t number_ = 0;
};

}  // namespace attendant
