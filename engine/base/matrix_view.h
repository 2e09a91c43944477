// MatrixView: a non-owning view of a row-major matrix with a stride.
#pragma once

#include <cstdint>

namespace attendant {

// A view of rows x cols elements. Row r starts at data + r * stride. The elements must outlive it.
// Can be copied freely. Bounds are not checked. A default-constructed view has no rows and a null
// pointer.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from the start of one row to the next; >= cols

  T* row(int64_t r) const { return data + r * stride; }
  // Returns all columns of the rows [begin, begin + count).
  MatrixView Rows(int64_t begin, int64_t count) const { return {row(begin), count, cols, stride}; }
  // Returns all rows of the columns [begin, begin + count).
  MatrixView Columns(int64_t begin, int64_t count) const {
    return {data + begin, rows, count, stride};
  }
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }
};

}  // namespace attendant
