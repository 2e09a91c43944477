// Matrix, a dense matrix of float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/types/span.h"

namespace attendant::client {

// Row-major; a value that can be copied and compared.
class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, double value = 0)
      : rows_(rows), cols_(cols), values_(static_cast<size_t>(rows * cols), value) {}
  Matrix(std::initializer_list<std::initializer_list<double>> rows)
      : rows_(static_cast<int64_t>(rows.size())),
        cols_(rows_ == 0 ? 0 : static_cast<int64_t>(rows.begin()->size())) {
    for (const auto& row : rows) values_.insert(values_.end(), row);
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  double& operator()(int64_t row, int64_t col) { return values_[At(row, col)]; }
  double operator()(int64_t row, int64_t col) const { return values_[At(row, col)]; }
  absl::Span<const double> row(int64_t row) const {
    return absl::MakeConstSpan(values_).subspan(At(row, 0), static_cast<size_t>(cols_));
  }
  const std::vector<double>& values() const { return values_; }

  friend bool operator==(const Matrix& a, const Matrix& b) = default;

 private:
  size_t At(int64_t row, int64_t col) const { return static_cast<size_t>(row * cols_ + col); }

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  std::vector<double> values_;
};

}  // namespace attendant::client
