// MatrixView: a non-owning view of a matrix in row-major order whose rows may lie apart.
#pragma once

#include <cstdint>

namespace attendant {

// A view of rows x cols elements; row r starts at data + r * stride. It does not own the elements,
// which must outlive it, and may be copied freely. Nothing checks the bounds. A default-constructed
// view has no rows and a null pointer.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from the start of one row to that of the next; >= cols

  T* row(int64_t r) const { return data + r * stride; }
  // The rows [begin, begin + count), in all columns.
  MatrixView Rows(int64_t begin, int64_t count) const { return {row(begin), count, cols, stride}; }
  // The columns [begin, begin + count), in all rows.
  MatrixView Columns(int64_t begin, int64_t count) const {
    return {data + begin, rows, count, stride};
  }
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }
};

}  // namespace attendant
