// LinearInput and LinearOutput: the rows that a linear layer takes and makes, as float32 or as the
// operands of products.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/activation.h"

namespace attendant {

class OperandBuffer;
struct Operand;
struct OperandLayout;

// The operand of a product: x, rounded or quantised as the compute type demands. The code that
// makes x writes it, each row while it is in cache; see GemmWorkspace::Prepare. It is a view of the
// workspace's memory and may be copied freely. It is valid until the workspace makes another
// operand in the same memory; from then on products make the operand from the rows themselves.
class PreparedOperand {
 public:
  // Makes an empty operand, with nothing to write or to read.
  PreparedOperand() = default;
  // Refers to the operand that `buffer` holds now.
  explicit PreparedOperand(OperandBuffer& buffer);

  // Rounds or quantises x into row `row`, from column `column` on; for int8, x must be the whole
  // row. `worker` is one of the workspace's; the workers may write different rows at the same time,
  // in any order.
  void Write(int worker, int64_t row, absl::Span<const float> x, int64_t column = 0) const;
  // Likewise with the rows of x, from row `first` on.
  void WriteRows(int worker, int64_t first, MatrixView<const float> x, int64_t column = 0) const;

  // Returns the operand of the rows from `row` on.
  PreparedOperand From(int64_t row) const;

  // Returns the place of `count` columns of the rows from `row` on, if the CPU itself rounds to the
  // operand and they lie side by side in it. Who writes there need not call Write.
  std::optional<Bf16Rows> NativePlace(int64_t row, int64_t column, int64_t count) const;

  // Whether parts of a row may be written, so that a product can write the blocks that it makes.
  bool TakesColumns() const;
  bool empty() const { return buffer_ == nullptr; }

  // Returns the operand for products that read `layout`, or nothing if it has another layout or is
  // no longer valid.
  std::optional<Operand> Find(const OperandLayout& layout) const;

 private:
  OperandBuffer* buffer_ = nullptr;
  int64_t number_ = 0;  // counts the operands that the buffer has held, up to this one
  int64_t first_row_ = 0;
};

// Rows that a layer or norm makes, with the operand that it makes along with them. Owns neither.
struct PreparedRows {
  PreparedRows(MatrixView<float> made,  // NOLINT(google-explicit-constructor)
               PreparedOperand along = {})
      : rows(made), operand(along) {}

  MatrixView<float> rows;
  PreparedOperand operand;
};

// The input x of a product, with its operand if that is ready. Owns neither.
struct LinearInput {
  LinearInput(MatrixView<const float> x,  // NOLINT(google-explicit-constructor)
              PreparedOperand ready = {})
      : rows(x), operand(ready) {}
  LinearInput(MatrixView<float> x)  // NOLINT(google-explicit-constructor)
      : rows(x) {}
  LinearInput(const PreparedRows& made)  // NOLINT(google-explicit-constructor)
      : rows(made.rows), operand(made.operand) {}

  LinearInput Rows(int64_t begin, int64_t count) const {
    return {rows.Rows(begin, count), operand.From(begin)};
  }

  MatrixView<const float> rows;
  PreparedOperand operand;
};

// The place of the result y [PaddedRows(T), out] of a linear layer. Owns nothing.
struct LinearOutput {
  // `y` gets it.
  LinearOutput(MatrixView<float> y)  // NOLINT(google-explicit-constructor)
      : rows(y) {}
  // The operand of the next layer gets it, while a block of y is in cache if it TakesColumns; else
  // the rows do first, and they alone if it is empty. The operand must not be in the memory that x
  // has its own in (GemmWorkspace::Prepare and PrepareInner).
  LinearOutput(const PreparedRows& made)  // NOLINT(google-explicit-constructor)
      : rows(made.rows), operand(made.operand) {}
  // `pairs` [PaddedRows(T), out / 2] gets it, rounded to bfloat16 as kBf16 rounds its operands: two
  // neighbours in the 32 bits of an element, the first one in the low half. For layers with an even
  // number of outputs, on CPUs with HasBf16Units.
  static LinearOutput Pairs(MatrixView<float> pairs) {
    LinearOutput y(pairs);
    y.is_pairs = true;
    return y;
  }

  MatrixView<float> rows;
  PreparedOperand operand;
  bool is_pairs = false;
};

}  // namespace attendant
