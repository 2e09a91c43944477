// What linear layers read: rows of float32 and, where it is ready, what their compute type makes of
// them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

class OperandBuffer;
struct Operand;
struct OperandLayout;

// The operand of a product, made by whoever makes x, each row while it is in cache: see
// GemmWorkspace::Prepare. A view of the workspace's memory, copied freely. It is good until the
// workspace makes another operand in its place; from then on products make their own of the rows.
class PreparedOperand {
 public:
  // Of nothing: there is nothing to write or to read.
  PreparedOperand() = default;
  // Of what `buffer` holds now.
  explicit PreparedOperand(OperandBuffer& buffer);

  // Rounds or quantises x, the columns of row `row` from `column` on: of int8 the whole row.
  // `worker` is one of the workspace's; each may write rows, in any order, while the others do.
  void Write(int worker, int64_t row, absl::Span<const float> x, int64_t column = 0) const;

  // That of the rows from `row` on.
  PreparedOperand From(int64_t row) const;

  // For products that read this layout; nothing if this is of another, or good no more.
  std::optional<Operand> Find(const OperandLayout& layout) const;

 private:
  OperandBuffer* buffer_ = nullptr;
  int64_t number_ = 0;  // among all that the buffer has held
  int64_t first_row_ = 0;
};

// Rows that somebody makes, and the operand that is made along with them.
struct PreparedRows {
  PreparedRows(MatrixView<float> made,  // NOLINT(google-explicit-constructor)
               PreparedOperand along = {})
      : rows(made), operand(along) {}

  MatrixView<float> rows;
  PreparedOperand operand;
};

// x of a product.
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

}  // namespace attendant
