// A window on rows that somebody else owns.
#pragma once

#include <cstdint>

namespace attendant {

// rows x cols elements; row r starts at data + r * stride. Does not own; copied freely.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements between the starts of two rows, >= cols

  T* row(int64_t r) const { return data + r * stride; }
  MatrixView Rows(int64_t begin, int64_t count) const { return {row(begin), count, cols, stride}; }
  MatrixView Columns(int64_t begin, int64_t count) const {
    return {data + begin, rows, count, stride};
  }
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }
};

}  // namespace attendant
