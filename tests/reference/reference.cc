#include "tests/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace attendant::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Dot(const Matrix& a, int64_t row_a, const Matrix& b, int64_t row_b) {
  double sum = 0;
  for (int64_t i = 0; i < a.cols(); ++i) sum += a(row_a, i) * b(row_b, i);
  return sum;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Returns what is added to the scores of the kept tokens of one head: its bias, and minus infinity
// outside the window.
Matrix HeadBias(const AttentionSequence& sequence, const AttentionBias* distances, int64_t head,
                const AttentionShape& shape) {
  const auto position = [](absl::Span<const int32_t> positions, int64_t i) {
    return positions.empty() ? i : positions[i];
  };
  const auto key_positions =
      sequence.cross_kv == nullptr ? sequence.positions : sequence.cross_kv->positions;
  Matrix result(sequence.length, sequence.keys());
  for (int64_t s = 0; s < result.rows(); ++s) {
    for (int64_t t = 0; t < result.cols(); ++t) {
      const int64_t query = position(sequence.positions, s), key = position(key_positions, t);
      for (const AttentionBias* bias : {sequence.bias, distances}) {
        if (bias == nullptr) continue;
        result(s, t) += bias->data[head * bias->head_stride + query * bias->query_stride +
                                   key * bias->key_stride];
      }
      const int64_t first = position(key_positions, 0);
      const int64_t extent = position(key_positions, result.cols() - 1) - first + 1;
      result(s, t) += WindowMask(shape.window, shape.pattern, extent, query - first, key - first);
      if (shape.causal && key > query) result(s, t) = -kInfinity;
    }
  }
  return result;
}

}  // namespace

double WindowMask(int64_t window, const AttentionPattern& pattern, int64_t extent, int64_t query,
                  int64_t key) {
  if (window == 0 || extent <= pattern.full_up_to) return 0;
  const int64_t last = (extent - 1) / pattern.block;
  const absl::Span<const int64_t> globals = pattern.listed.globals();
  const auto is_global = [&](int64_t block) {
    return block < pattern.first_global || block > last - pattern.last_global ||
           std::count(globals.begin(), globals.end(), block) > 0;
  };
  const int64_t from = query / pattern.block, to = key / pattern.block;
  if (is_global(from)) return 0;
  const absl::Span<const BlockPair> pairs = pattern.listed.pairs();
  const bool lists = std::count(pairs.begin(), pairs.end(), BlockPair{from, to}) > 0;
  if (!lists && !is_global(to) && std::abs(from - to) > window) return -kInfinity;
  return to == 0 ? std::log(1.0 + static_cast<double>(pattern.first_repeats)) : 0;
}

Matrix::Matrix(MatrixView<const float> view) : Matrix(view.rows, view.cols) {
  for (int64_t r = 0; r < rows_; ++r) std::copy_n(view.row(r), cols_, &values_[r * cols_]);
}

Matrix Matrix::Columns(int64_t begin, int64_t count) const {
  Matrix result(rows_, count);
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < count; ++c) result(r, c) = (*this)(r, begin + c);
  }
  return result;
}

Matrix Linear(const Matrix& x, const Matrix& weight, absl::Span<const float> bias) {
  Matrix y(x.rows(), weight.rows());
  for (int64_t r = 0; r < y.rows(); ++r) {
    for (int64_t c = 0; c < y.cols(); ++c)
      y(r, c) = Dot(x, r, weight, c) + (bias.empty() ? 0.0 : bias[c]);
  }
  return y;
}

double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh: {
      const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1 + std::tanh(u));
    }
    case Activation::kQuickGelu:
      return x * Sigmoid(1.702 * x);
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
  }
  return x;
}

Matrix Activate(Activation activation, Matrix x) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.cols(); ++c) x(r, c) = Activate(activation, x(r, c));
  }
  return x;
}

Matrix Add(const Matrix& x, const Matrix& y) {
  Matrix sum(x.rows(), x.cols());
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.cols(); ++c) sum(r, c) = x(r, c) + y(r, c);
  }
  return sum;
}

Matrix LayerNorm(const Matrix& x, absl::Span<const float> gamma, absl::Span<const float> beta,
                 double epsilon) {
  Matrix y(x.rows(), x.cols());
  const double size = static_cast<double>(x.cols());
  for (int64_t r = 0; r < x.rows(); ++r) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < x.cols(); ++c) mean += x(r, c) / size;
    for (int64_t c = 0; c < x.cols(); ++c) variance += (x(r, c) - mean) * (x(r, c) - mean) / size;
    for (int64_t c = 0; c < x.cols(); ++c) {
      y(r, c) = gamma[c] * (x(r, c) - mean) / std::sqrt(variance + epsilon) +
                (beta.empty() ? 0.0 : beta[c]);
    }
  }
  return y;
}

Matrix RmsNorm(const Matrix& x, absl::Span<const float> gamma, double epsilon) {
  Matrix y(x.rows(), x.cols());
  for (int64_t r = 0; r < x.rows(); ++r) {
    double squares = 0;
    for (int64_t c = 0; c < x.cols(); ++c) squares += x(r, c) * x(r, c);
    const double root = std::sqrt(squares / static_cast<double>(x.cols()) + epsilon);
    for (int64_t c = 0; c < x.cols(); ++c) y(r, c) = gamma[c] * x(r, c) / root;
  }
  return y;
}

float RoundToBf16(float x) {
  if (!std::isfinite(x)) return x;
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t kept = bits & 0xFFFF0000u, rest = bits & 0xFFFFu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && (bits & 0x10000u) != 0);
  bits = kept + (up ? 0x10000u : 0u);
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

Matrix RoundToBf16(Matrix x) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.cols(); ++c) x(r, c) = RoundToBf16(static_cast<float>(x(r, c)));
  }
  return x;
}

HeadResult AttendHead(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const Matrix& bias) {
  const bool rounds = AttendsInBf16(shape.mode.type);
  const auto operand = [rounds](const Matrix& x) { return rounds ? RoundToBf16(x) : x; };
  const Matrix q = operand(queries), k = operand(keys), v = operand(values);
  HeadResult result{Matrix(q.rows(), v.cols()), Matrix(q.rows(), k.rows()), 0};
  for (int64_t s = 0; s < q.rows(); ++s) {
    std::vector<double> scores(k.rows());
    double maximum = -kInfinity, sum = 0;
    for (int64_t t = 0; t < k.rows(); ++t) {
      scores[t] = Dot(q, s, k, t) * static_cast<double>(shape.score_scale) + bias(s, t);
      if (scores[t] > maximum || std::isnan(scores[t])) maximum = scores[t];
    }
    if (maximum == -kInfinity) {
      ++result.fully_masked_rows;
      continue;
    }
    for (double& score : scores) sum += score = std::exp(score - maximum);
    for (int64_t t = 0; t < k.rows(); ++t) {
      const double probability = result.probabilities(s, t) = scores[t] / sum;
      const double weight = rounds ? RoundToBf16(static_cast<float>(probability)) : probability;
      for (int64_t c = 0; c < values.cols(); ++c) result.context(s, c) += weight * v(t, c);
    }
  }
  return result;
}

SequenceResult Attend(const AttentionShape& shape, const Matrix& queries, const Matrix& keys,
                      const Matrix& values, const AttentionSequence& sequence,
                      const AttentionBias* distances) {
  const int64_t length = queries.rows();
  SequenceResult result{Matrix(length, shape.heads * shape.value_width), {}, 0};
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t shared = h / (shape.heads / shape.kv_heads());
    HeadResult head = AttendHead(shape, queries.Columns(h * shape.key_width, shape.key_width),
                                 keys.Columns(shared * shape.key_width, shape.key_width),
                                 values.Columns(shared * shape.value_width, shape.value_width),
                                 HeadBias(sequence, distances, h, shape));
    for (int64_t s = 0; s < length; ++s) {
      for (int64_t c = 0; c < shape.value_width; ++c) {
        result.context(s, h * shape.value_width + c) = head.context(s, c);
      }
    }
    result.probabilities.push_back(std::move(head.probabilities));
    result.fully_masked_rows += head.fully_masked_rows;
  }
  return result;
}

namespace {

constexpr size_t kRotatedBlock = 128;

// Computes the Walsh-Hadamard transform, with its sums in the usual order.
void Rotate(absl::Span<float> block) {
  for (size_t stride = block.size() / 2; stride > 0; stride /= 2) {
    for (size_t i = 0; i < block.size(); ++i) {
      if ((i & stride) != 0) continue;
      const float a = block[i], b = block[i + stride];
      block[i] = a + b;
      block[i + stride] = a - b;
    }
  }
}

// Rotates whole blocks and multiplies them by `block_factor`; multiplies the rest by `tail_factor`.
std::vector<float> RotateRow(absl::Span<const float> row, float block_factor, float tail_factor) {
  std::vector<float> rotated(row.begin(), row.end());
  size_t i = 0;
  for (; i + kRotatedBlock <= row.size(); i += kRotatedBlock) {
    Rotate(absl::MakeSpan(&rotated[i], kRotatedBlock));
    for (size_t j = i; j < i + kRotatedBlock; ++j) rotated[j] *= block_factor;
  }
  for (; i < row.size(); ++i) rotated[i] *= tail_factor;
  return rotated;
}

// Returns max |x|, or NaN if an element is not finite.
float LargestMagnitude(absl::Span<const float> row) {
  float largest = 0;
  for (const float x : row) {
    if (!std::isfinite(x)) return std::nanf("");
    largest = std::max(largest, std::abs(x));
  }
  return largest;
}

double Quantize(float x, float largest) {
  if (largest == 0) return 0;
  return static_cast<double>(std::nearbyint(x * (127.0f / largest))) * (largest / 127.0f);
}

enum class Part { kHigh, kLow };

Matrix Split(MatrixView<const float> rows, absl::Span<const Part> parts) {
  Matrix operand(rows.rows, rows.cols * static_cast<int64_t>(parts.size()));
  for (int64_t r = 0; r < operand.rows(); ++r) {
    for (int64_t c = 0; c < operand.cols(); ++c) {
      const float x = rows.row(r)[c % rows.cols], high = RoundToBf16(x);
      operand(r, c) = parts[c / rows.cols] == Part::kHigh ? high : RoundToBf16(x - high);
    }
  }
  return operand;
}

Matrix Operand(ComputeType type, MatrixView<const float> rows, float block_factor,
               float tail_factor) {
  Matrix operand(rows);
  for (int64_t r = 0; r < rows.rows && type == ComputeType::kInt8; ++r) {
    const std::vector<float> rotated =
        RotateRow({rows.row(r), static_cast<size_t>(rows.cols)}, block_factor, tail_factor);
    const float largest = LargestMagnitude(rotated);
    for (int64_t c = 0; c < rows.cols; ++c) operand(r, c) = Quantize(rotated[c], largest);
  }
  for (int64_t r = 0; r < rows.rows && type == ComputeType::kBf16; ++r) {
    for (int64_t c = 0; c < rows.cols; ++c) operand(r, c) = RoundToBf16(rows.row(r)[c]);
  }
  return operand;
}

}  // namespace

Matrix InputOperand(ComputeType type, MatrixView<const float> rows) {
  if (type == ComputeType::kBf16x3) return Split(rows, {Part::kLow, Part::kHigh, Part::kHigh});
  return Operand(type, rows, 1.0f, 8.0f);
}

Matrix WeightOperand(ComputeType type, MatrixView<const float> rows) {
  if (type == ComputeType::kBf16x3) return Split(rows, {Part::kHigh, Part::kLow, Part::kHigh});
  return Operand(type, rows, 1.0f / kRotatedBlock, 1.0f / 8.0f);
}

double MaxDifference(const Matrix& expected, MatrixView<const float> actual) {
  double largest = 0;
  for (int64_t r = 0; r < expected.rows(); ++r) {
    for (int64_t c = 0; c < expected.cols(); ++c) {
      const double a = expected(r, c), b = actual.row(r)[c];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double difference = std::abs(a - b);
      largest = std::max(largest, std::isfinite(difference) ? difference : kInfinity);
    }
  }
  return largest;
}

}  // namespace attendant::reference
