// Naive kernels in float64, written to be read: what the engine's kernels are compared with.
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

// x [T, in], weight [out, in], bias [out] or empty -> x weight^T + bias, [T, out].
Matrix Linear(const Matrix& x, const Matrix& weight, absl::Span<const float> bias);

double Activate(Activation activation, double x);
Matrix Activate(Activation activation, Matrix x);

Matrix Add(const Matrix& x, const Matrix& y);

// gamma [E]; beta [E] or empty.
Matrix LayerNorm(const Matrix& x, absl::Span<const float> gamma, absl::Span<const float> beta,
                 double epsilon);

// Zhang and Sennrich 2019; gamma [E].
Matrix RmsNorm(const Matrix& x, absl::Span<const float> gamma, double epsilon);

// To nearest even; infinities and NaN stay.
float RoundToBf16(float x);
Matrix RoundToBf16(Matrix x);

// What the mask of a window and a pattern adds to the score of a query at `query` and a key at
// `key`, counted from the first of a sequence that reaches over `extent` positions: 0, minus
// infinity for what is masked, or the logarithm of how often a key counts.
double WindowMask(int64_t window, const AttentionPattern& pattern, int64_t extent, int64_t query,
                  int64_t key);

// One head of one sequence. bias(s, t) is added to the scaled scores, minus infinity masks. In
// kBf16 and kInt8 queries, keys, values and the probabilities that weigh them are rounded to
// bfloat16. Of `shape` only the scale and the mode count.
struct HeadResult {
  Matrix context;        // [length, Dv]
  Matrix probabilities;  // [length, keys]
  int64_t fully_masked_rows;
};
HeadResult AttendHead(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const Matrix& bias);

// All heads of one sequence, as the engine's Attention computes them. queries [length, H Dk], keys
// [keys, H Dk], values [keys, H Dv], of the sequence or its cross_kv; bias and positions are those
// of `sequence`, distances a second bias or none.
struct SequenceResult {
  Matrix context;                     // [length, H Dv]
  std::vector<Matrix> probabilities;  // [H] of [length, keys]
  int64_t fully_masked_rows;
};
SequenceResult Attend(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const AttentionSequence& sequence,
                      const AttentionBias* distances = nullptr);

// What a compute type makes of the operands of a product, as values, row by row: the product of an
// input and a weight stands for that of the rows they were made from. kBf16: rounded to nearest
// even. kBf16x3: three times as many columns, [low, high, high] of an input and [high, low, high]
// of a weight, of which a finite element is nearly the sum. kInt8: rotated in blocks of 128 (see
// engine/kernels/operand.h), then the nearest of 255 evenly spaced values up to the row's largest
// magnitude; NaN in a row that is not finite. Rotation, scales and roundings in float32, as in the
// engine, or else a value halfway between two could go either way.
Matrix InputOperand(ComputeType type, MatrixView<const float> rows);
Matrix WeightOperand(ComputeType type, MatrixView<const float> rows);

// Largest absolute difference; infinity if a NaN or an infinity is not matched.
double MaxDifference(const Matrix& expected, MatrixView<const float> actual);

}  // namespace attendant::reference
