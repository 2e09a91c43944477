#include "proto/singular_values.h"

#include <lapack.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace attendant::proto {
namespace {

bool IsFinite(const std::vector<double>& matrix) {
  return std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); });
}

// Row-major.
struct Triangle {
  int64_t rows;
  int64_t cols;
  std::vector<double> values;
};

// Returns R of A^T = Q R, for A with `rows` rows. It has as many rows as the smaller side of A.
Triangle FactorOfTranspose(absl::Span<const float> a, int64_t rows) {
  // In Fortran's order of elements the rows of A are the columns of A^T.
  std::vector<double> transposed(a.begin(), a.end());
  const auto width = static_cast<lapack_int>(rows);
  const auto height = static_cast<lapack_int>(static_cast<int64_t>(a.size()) / rows);
  const lapack_int side = std::min(height, width);
  std::vector<double> factors(static_cast<size_t>(side));
  double wanted = 0;
  lapack_int info = 0, query = -1;
  LAPACK_dgeqrf(&height, &width, transposed.data(), &height, factors.data(), &wanted, &query,
                &info);
  auto room = static_cast<lapack_int>(wanted);
  std::vector<double> work(static_cast<size_t>(room));
  LAPACK_dgeqrf(&height, &width, transposed.data(), &height, factors.data(), work.data(), &room,
                &info);
  Triangle triangle = {side, rows, std::vector<double>(static_cast<size_t>(side * rows))};
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t col = row; col < rows; ++col) {
      triangle.values[row * rows + col] = transposed[col * height + row];
    }
  }
  return triangle;
}

}  // namespace

std::vector<double> SingularValues(std::vector<double> matrix, int64_t rows, int64_t cols) {
  assert(static_cast<int64_t>(matrix.size()) == rows * cols);
  if (matrix.empty() || !IsFinite(matrix)) return {};
  // In Fortran's order of elements this is the transpose, which has the same singular values.
  const auto height = static_cast<lapack_int>(cols), width = static_cast<lapack_int>(rows);
  std::vector<double> values(static_cast<size_t>(std::min(height, width)));
  std::vector<lapack_int> integers(8 * values.size());
  const lapack_int one = 1;
  double wanted = 0;
  lapack_int info = 0, query = -1;
  LAPACK_dgesdd("N", &height, &width, matrix.data(), &height, values.data(), nullptr, &one, nullptr,
                &one, &wanted, &query, integers.data(), &info);
  auto room = static_cast<lapack_int>(wanted);
  std::vector<double> work(static_cast<size_t>(room));
  LAPACK_dgesdd("N", &height, &width, matrix.data(), &height, values.data(), nullptr, &one, nullptr,
                &one, work.data(), &room, integers.data(), &info);
  if (info != 0) return {};  // no convergence; not known to happen for finite matrices
  return values;
}

std::vector<double> SingularValuesOfProduct(absl::Span<const float> a, absl::Span<const float> b,
                                            int64_t rows) {
  if (a.empty() || b.empty()) return {};
  // With A^T = Q R and B^T = P S, A^T B = Q (R S^T) P^T has the singular values of R S^T.
  const Triangle r = FactorOfTranspose(a, rows), s = FactorOfTranspose(b, rows);
  std::vector<double> product(static_cast<size_t>(r.rows * s.rows));
  for (int64_t i = 0; i < r.rows; ++i) {
    for (int64_t j = 0; j < s.rows; ++j) {
      double& sum = product[i * s.rows + j];
      for (int64_t k = std::max(i, j); k < rows; ++k) {
        sum += r.values[i * rows + k] * s.values[j * rows + k];
      }
    }
  }
  return SingularValues(std::move(product), r.rows, s.rows);
}

}  // namespace attendant::proto
