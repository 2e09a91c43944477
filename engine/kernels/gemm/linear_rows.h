// LinearInput and PreparedRows: the input and output rows of a linear layer, as float32 or as
// packed GEMM inputs.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/activation.h"

namespace attendant {

class PackedInputBuffer;
struct PackedInputView;

// The layout in which a linear layer reads x: blocks of `k_block` columns, each in one or two
// parts.
struct PackedInputLayout {
  ComputeMode mode;
  int64_t in;
  int64_t k_block;

  friend bool operator==(const PackedInputLayout&, const PackedInputLayout&) = default;
};

// A packed GEMM input: x, rounded or quantised to the number format of the compute type. The code
// that computes x writes it, each row while it is in cache; see GemmWorkspace::Prepare. A view of
// the workspace's memory that can be copied freely. It is valid until the workspace returns another
// one in the same memory; after that, products pack the rows of x themselves.
class PackedInput {
 public:
  // Creates an empty view, which must not be read or written.
  PackedInput() = default;
  // Refers to the current content of `buffer`, which must outlive it.
  explicit PackedInput(PackedInputBuffer& buffer);

  // Rounds or quantises the rows of x into the rows from `first` on, from column `column` on. For
  // int8, x must have whole rows. `worker` is the number of a worker of the workspace. Workers may
  // write different rows at the same time and in any order.
  void WriteRows(int worker, int64_t first, MatrixView<const float> x, int64_t column = 0) const;

  // Returns a view of the rows from `row` on.
  PackedInput From(int64_t row) const;

  // Returns the memory of `count` columns of the rows from `row` on, if the CPU has instructions
  // that round to this format and the columns are contiguous. The caller may write there instead of
  // calling WriteRows.
  std::optional<Bf16Rows> NativePlace(int64_t row, int64_t column, int64_t count) const;

  // Whether rows may be written in parts, as a product does that writes its output block by block.
  bool TakesColumns() const;
  bool empty() const { return buffer_ == nullptr; }

  // Returns the input for products that read `layout`, or nothing if it has another layout or is no
  // longer valid.
  std::optional<PackedInputView> Find(const PackedInputLayout& layout) const;

 private:
  PackedInputBuffer* buffer_ = nullptr;
  int64_t number_ = 0;  // of this input among those that the buffer has held
  int64_t first_row_ = 0;
};

// Output rows of a layer or norm, with the packed GEMM input that it also writes. Owns neither.
struct PreparedRows {
  PreparedRows(MatrixView<float> made,  // NOLINT(google-explicit-constructor)
               PackedInput along = {})
      : rows(made), packed(along) {}
  // The output y of a linear layer is written to `pairs` [T, out / 2] as bf16 pairs: rounded to
  // bfloat16 as for kBf16, two adjacent columns in the 32 bits of an element, the first one in the
  // low half. For layers with an even number of outputs, on CPUs with HasBf16Units.
  static PreparedRows Pairs(MatrixView<float> pairs) {
    PreparedRows y(pairs);
    y.is_pairs = true;
    return y;
  }

  MatrixView<float> rows;
  PackedInput packed;
  bool is_pairs = false;
};

// The input x of a product, with its packed form if that was already written. Owns neither.
struct LinearInput {
  LinearInput(MatrixView<const float> x,  // NOLINT(google-explicit-constructor)
              PackedInput ready = {})
      : rows(x), packed(ready) {}
  LinearInput(MatrixView<float> x)  // NOLINT(google-explicit-constructor)
      : rows(x) {}
  LinearInput(const PreparedRows& made)  // NOLINT(google-explicit-constructor)
      : rows(made.rows), packed(made.packed) {}

  LinearInput Rows(int64_t begin, int64_t count) const {
    return {rows.Rows(begin, count), packed.From(begin)};
  }

  MatrixView<const float> rows;
  PackedInput packed;
};

}  // namespace attendant
