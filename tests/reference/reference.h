// Naive float64 kernels, written to be read, which the engine's kernels are compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/attention/attention.h"

namespace attendant::reference {

// A dense matrix of doubles.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), values_(rows * cols) {}
  explicit Matrix(MatrixView<const float> view);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  double& operator()(int64_t r, int64_t c) { return values_[r * cols_ + c]; }
  double operator()(int64_t r, int64_t c) const { return values_[r * cols_ + c]; }
  Matrix Columns(int64_t begin, int64_t count) const;

 private:
  int64_t rows_;
  int64_t cols_;
  std::vector<double> values_;
};

// Returns x weight^T + bias, [T, out], for x [T, in], weight [out, in] and bias [out] or empty.
Matrix Linear(const Matrix& x, const Matrix& weight, absl::Span<const float> bias);

double Activate(Activation activation, double x);
Matrix Activate(Activation activation, Matrix x);

Matrix Add(const Matrix& x, const Matrix& y);

// `gamma` is [E]; `beta` is [E] or empty.
Matrix LayerNorm(const Matrix& x, absl::Span<const float> gamma, absl::Span<const float> beta,
                 double epsilon);

// The norm of Zhang and Sennrich 2019; `gamma` is [E].
Matrix RmsNorm(const Matrix& x, absl::Span<const float> gamma, double epsilon);

// Rounds to nearest even. Infinities and NaN are unchanged.
float RoundToBf16(float x);
Matrix RoundToBf16(Matrix x);

// Returns what the mask of a window and a pattern adds to the score of the query at `query` and the
// key at `key`: 0, minus infinity for a masked pair, or the logarithm of how often the key counts.
// Positions count from the first of a sequence that spans `extent` positions.
double WindowMask(int64_t window, const AttentionPattern& pattern, int64_t extent, int64_t query,
                  int64_t key);

// The attention of one head on one sequence. bias(s, t) is added to the scaled scores; minus
// infinity masks. In kBf16 and kInt8, queries, keys, values and the probabilities that weigh the
// values are rounded to bfloat16. Only the scale and the mode of `shape` are used.
struct HeadResult {
  Matrix context;        // [length, Dv]
  Matrix probabilities;  // [length, keys]
  int64_t fully_masked_rows;
};
HeadResult AttendHead(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const Matrix& bias);

// The attention of all heads on one sequence, as the engine's Attention computes it. queries
// [length, H Dk], keys [keys, K Dk] and values [keys, K Dv] are those of the sequence or of its
// cross_kv; bias and positions are those of `sequence`; `distances` is a second bias or null.
struct SequenceResult {
  Matrix context;                     // [length, H Dv]
  std::vector<Matrix> probabilities;  // [H] of [length, keys]
  int64_t fully_masked_rows;
};
SequenceResult Attend(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const AttentionSequence& sequence,
                      const AttentionBias* distances = nullptr);

// Return the operands that a compute type makes of the rows of an input or a weight, as values; the
// product of two such operands stands for the product of the rows. kBf16: rounded to nearest even.
// kBf16x3: three times as many columns, [low, high, high] of an input and [high, low, high] of a
// weight; a finite element is nearly low + high. kInt8: rotated in blocks of 128 (see
// engine/kernels/gemm/number_format.h), then rounded to the nearest of 255 evenly spaced values up
// to the largest magnitude of the row; NaN in a row that is not finite. Rotation, scales and
// roundings are float32, as in the engine, because otherwise a value halfway between two could be
// rounded either way.
Matrix InputOperand(ComputeType type, MatrixView<const float> rows);
Matrix WeightOperand(ComputeType type, MatrixView<const float> rows);

// Returns the largest absolute difference; infinity if a NaN or an infinity has no equal
// counterpart.
double MaxDifference(const Matrix& expected, MatrixView<const float> actual);

}  // namespace attendant::reference
