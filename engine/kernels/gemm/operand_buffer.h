// The memory of the operands of products.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/linear_rows.h"

namespace attendant {

// The layout in which a linear layer reads x: blocks of `k_block` columns, each in all the parts of
// its type.
struct OperandLayout {
  ComputeMode mode;
  int64_t in;
  int64_t k_block;

  friend bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

// A view of x as the products read it. Row r of block b (see PanelShape) is dense and starts
// b * block_stride + r * row_stride bytes after `data`.
struct Operand {
  const char* data;
  int64_t row_stride;    // bytes
  int64_t block_stride;  // bytes
  const float* scales;   // one per row, for int8 alone

  const char* row(int64_t block, int64_t r) const {
    return data + block * block_stride + r * row_stride;
  }
};

// A buffer for one operand at a time, which the workers of a team write. It holds nothing for kF32,
// whose products read x itself.
class OperandBuffer {
 public:
  explicit OperandBuffer(int workers) : scratch_(workers) {}
  // PreparedOperand refers to its buffer, so the buffer must not move.
  OperandBuffer(const OperandBuffer&) = delete;
  OperandBuffer& operator=(const OperandBuffer&) = delete;

  // Makes room for `rows` rows of that layout.
  void Reserve(const OperandLayout& layout, int64_t rows);

  // Starts an operand of `rows` rows, with zeros up to PaddedRows(rows). It replaces the previous
  // one.
  PreparedOperand Begin(const OperandLayout& layout, int64_t rows);

  // Likewise in the layout of that mode and number of columns that has been reserved for at least
  // PaddedRows(rows) rows; empty if there is none.
  PreparedOperand Begin(const ComputeMode& mode, int64_t in, int64_t rows);

  // Writes parts of the rows from `row` on; see PreparedOperand::Write.
  void Write(int worker, int64_t row, int64_t column, MatrixView<const float> x);

  // Returns where parts of the rows are; see PreparedOperand::NativePlace.
  std::optional<Bf16Rows> NativePlace(int64_t row, int64_t column, int64_t count);

  const OperandLayout& layout() const { return layout_; }
  // Returns the number of operands that have been started.
  int64_t number() const { return number_; }
  Operand Rows(int64_t first) const;
  // Returns the size of the buffer without the scratch of the workers, which does not grow with the
  // rows.
  int64_t bytes() const { return data_.bytes() + scales_.bytes(); }

 private:
  struct Reserved {
    OperandLayout layout;
    int64_t rows;
  };

  int64_t row_stride() const;
  char* Place(int64_t block, int64_t r) {
    return data_.data() + block * block_stride_ + r * row_stride();
  }

  AlignedBuffer<char> data_;
  AlignedBuffer<float> scales_;                // for int8
  std::vector<AlignedBuffer<float>> scratch_;  // a row per worker, for int8
  std::vector<Reserved> reserved_;             // as few as the widths of a model
  OperandLayout layout_ = {};
  int64_t block_stride_ = 0;
  int64_t number_ = 0;
};

}  // namespace attendant
