#include "tests/reference/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/model/residual_blocks.h"
#include "tests/reference/reference.h"
#include "tests/reference/relative_positions.h"
#include "tests/reference/token_convolution.h"

namespace attendant::reference {
namespace {

using Vector = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The weights of one model, in float64, by their canonical names.
class Weights {
 public:
  Weights(WeightSource& source, ComputeType compute_type) : type(compute_type), source_(source) {}

  Vector Read(const std::string& name, int64_t elements) const {
    std::vector<float> values(elements);
    if (const absl::Status status = source_.Read(name, absl::MakeSpan(values)); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::abort();
    }
    return Vector(values.begin(), values.end());
  }

  // Returns zeros if the model has no such bias.
  Vector ReadBias(const std::string& name, int64_t elements) const {
    return source_.Has(name) ? Read(name, elements) : Vector(elements, 0.0);
  }

  const ComputeType type;

 private:
  WeightSource& source_;
};

// Returns rows as operands of a product; in kF32 they are unchanged.
using Rounding = Matrix (*)(ComputeType, MatrixView<const float>);
Vector Round(Rounding rounding, ComputeType type, const Vector& values, int64_t cols) {
  if (type == ComputeType::kF32) return values;
  const std::vector<float> floats(values.begin(), values.end());
  const int64_t rows = static_cast<int64_t>(values.size()) / cols;
  const Matrix rounded = rounding(type, {floats.data(), rows, cols, cols});
  const int64_t rounded_cols = rounded.cols();
  Vector result(rows * rounded_cols);
  for (int64_t i = 0; i < rows * rounded_cols; ++i) {
    result[i] = rounded(i / rounded_cols, i % rounded_cols);
  }
  return result;
}

struct LinearLayer {
  LinearLayer(const Weights& weights, const std::string& name, int64_t outs, int64_t ins)
      : LinearLayer(weights, name, outs, ins, weights.type) {}
  LinearLayer(const Weights& weights, const std::string& name, int64_t outs, int64_t ins,
              ComputeType compute_type)
      : type(compute_type), out(outs), in(ins), bias(weights.ReadBias(name + ".bias", outs)) {
    const Vector weight =
        Round(WeightOperand, type, weights.Read(name + ".weight", outs * ins), ins);
    depth = static_cast<int64_t>(weight.size()) / outs;
    transposed.resize(weight.size());
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < depth; ++i) transposed[i * out + o] = weight[o * depth + i];
    }
  }

  ComputeType type;
  int64_t out;
  int64_t in;
  int64_t depth;      // the columns of an operand
  Vector transposed;  // [depth, out]
  Vector bias;        // [out]
};

// Computes y = x W^T + b. Four rows at a time share each read of the weight.
Vector Apply(const LinearLayer& linear, const Vector& values) {
  constexpr int64_t kRows = 4;
  const Vector x = Round(InputOperand, linear.type, values, linear.in);
  const int64_t rows = static_cast<int64_t>(x.size()) / linear.depth;
  Vector y(rows * linear.out);
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t end = std::min(rows, begin + kRows);
    for (int64_t r = begin; r < end; ++r) {
      std::copy(linear.bias.begin(), linear.bias.end(), y.begin() + r * linear.out);
    }
    for (int64_t i = 0; i < linear.depth; ++i) {
      const double* __restrict weight = linear.transposed.data() + i * linear.out;
      for (int64_t r = begin; r < end; ++r) {
        double* __restrict sums = y.data() + r * linear.out;
        const double factor = x[r * linear.depth + i];
        for (int64_t o = 0; o < linear.out; ++o) sums[o] += factor * weight[o];
      }
    }
  }
  return y;
}

struct Norm {
  Norm(const Weights& weights, const std::string& name, int64_t width, const LayerShape& layer)
      : gamma(weights.Read(name + ".weight", width)),
        beta(weights.ReadBias(name + ".bias", width)),
        epsilon(layer.norms.epsilon),
        kind(layer.norms.kind) {
    if (kind != NormKind::kRmsPlusOne) return;
    for (double& element : gamma) ++element;
  }

  Vector gamma;
  Vector beta;
  double epsilon;
  NormKind kind;
};

Vector ApplyRms(const Norm& norm, Vector x) {
  const int64_t width = static_cast<int64_t>(norm.gamma.size());
  for (double* row = x.data(); row < x.data() + x.size(); row += width) {
    double squares = 0;
    for (int64_t j = 0; j < width; ++j) squares += row[j] * row[j];
    const double root = std::sqrt(squares / width + norm.epsilon);
    for (int64_t j = 0; j < width; ++j) row[j] *= norm.gamma[j] / root;
  }
  return x;
}

Vector ApplyAffine(const Norm& norm, Vector x) {
  const size_t width = norm.gamma.size();
  for (size_t i = 0; i < x.size(); ++i) x[i] = norm.gamma[i % width] * x[i] + norm.beta[i % width];
  return x;
}

Vector Apply(const Norm& norm, Vector x) {
  if (norm.kind == NormKind::kAffine) return ApplyAffine(norm, std::move(x));
  if (norm.kind == NormKind::kRms || norm.kind == NormKind::kRmsPlusOne) {
    return ApplyRms(norm, std::move(x));
  }
  const int64_t width = static_cast<int64_t>(norm.gamma.size());
  for (double* row = x.data(); row < x.data() + x.size(); row += width) {
    double mean = 0;
    for (int64_t j = 0; j < width; ++j) mean += row[j] / width;
    double variance = 0;
    for (int64_t j = 0; j < width; ++j) variance += (row[j] - mean) * (row[j] - mean) / width;
    const double deviation = std::sqrt(variance + norm.epsilon);
    for (int64_t j = 0; j < width; ++j) {
      row[j] = norm.gamma[j] * (row[j] - mean) / deviation + norm.beta[j];
    }
  }
  return x;
}

Vector Sum(Vector a, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// Multiplies every row by `by`.
Vector Scale(Vector x, const Vector& by) {
  for (size_t i = 0; i < x.size(); ++i) x[i] *= by[i % by.size()];
  return x;
}

// Computes the softmax of the scores in place.
void Softmax(Vector& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

// The terms that distance adds to the scores of each head.
class Distances {
 public:
  Distances(const LayerShape& shape, const Weights& weights)
      : shape_(shape.relative_positions), heads_(shape.attention.heads) {
    if (shape_.kind != RelativePositions::kBuckets) return;
    table_ = weights.Read("relative_positions", shape_.buckets * heads_);
  }

  double Of(int64_t head, int64_t query, int64_t key) const {
    if (shape_.kind == RelativePositions::kAlibi) {
      return -AlibiSlopes(heads_)[head] * static_cast<double>(std::abs(key - query));
    }
    if (shape_.kind != RelativePositions::kBuckets) return 0;
    return table_[Bucket(key - query, shape_.buckets, shape_.max_distance) * heads_ + head];
  }

 private:
  RelativePositionShape shape_;
  int64_t heads_;
  Vector table_;
};

// The position of each token of a sequence.
using Positions = std::vector<int32_t>;

// Rotates queries [n, H Dk] or keys [n, K Dk]: pairs of columns are points of a plane, turned
// according to their position.
Vector Turn(const LayerShape& shape, const Positions& positions, Vector x) {
  if (shape.relative_positions.kind != RelativePositions::kRotary || positions.empty()) return x;
  const RotaryShape& rotary = shape.relative_positions.rotary;
  const int64_t pairs = rotary.width() / 2;
  const bool halves = rotary.pairs == RotaryPairs::kHalves;
  const size_t width = shape.attention.key_width, heads = x.size() / (positions.size() * width);
  for (size_t s = 0; s < positions.size(); ++s) {
    for (size_t h = 0; h < heads; ++h) {
      double* head = &x[(s * heads + h) * width];
      for (int64_t j = 0; j < pairs; ++j) {
        double& a = head[halves ? j : 2 * j];
        double& b = head[halves ? j + pairs : 2 * j + 1];
        const double angle = positions[s] * rotary.frequencies[j];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = rotary.amplitude * (b * std::cos(angle) + a * std::sin(angle));
        a = rotary.amplitude * turned;
      }
    }
  }
  return x;
}

// The terms that disentangled attention adds for the distance of each head, query and key, [H, n,
// n], from the formula. Empty for other models.
class DistanceScores {
 public:
  DistanceScores(const LayerShape& shape, const Weights& weights, const std::string& prefix)
      : shape_(shape) {
    const RelativePositionShape& relative = shape.relative_positions;
    if (relative.kind != RelativePositions::kDisentangled) return;
    const int64_t width = shape.hidden_size, heads = shape.key_columns();
    Vector table = weights.Read("relative_positions", relative.position_rows() * width);
    if (relative.has_norm) {
      table = Apply(Norm(weights, "relative_positions_norm", width, shape), std::move(table));
    }
    const bool shared = relative.shares_projections;
    if (relative.scores_queries) {
      const std::string name = prefix + (shared ? "key" : "position_key");
      keys_ = Apply(LinearLayer(weights, name, heads, width), table);
    }
    if (relative.scores_keys) {
      const std::string name = prefix + (shared ? "query" : "position_query");
      queries_ = Apply(LinearLayer(weights, name, heads, width), table);
    }
  }

  Vector Of(const Positions& positions, const Vector& queries, const Vector& keys) const {
    const RelativePositionShape& relative = shape_.relative_positions;
    if (relative.kind != RelativePositions::kDisentangled) return {};
    const size_t length = positions.size();
    Vector scores(shape_.attention.heads * length * length, 0.0);
    for (size_t i = 0; i < scores.size(); ++i) {
      const size_t h = i / (length * length), s = i / length % length, t = i % length;
      const int64_t row =
          DistanceRow(positions[s] - positions[t], relative.buckets, relative.max_distance);
      if (!keys_.empty()) scores[i] += Dot(h, queries, s, keys_, row);
      if (!queries_.empty()) scores[i] += Dot(h, keys, t, queries_, row);
    }
    return scores;
  }

 private:
  double Dot(size_t head, const Vector& a, size_t row_a, const Vector& b, int64_t row_b) const {
    double sum = 0;
    for (int64_t j = 0; j < shape_.attention.key_width; ++j) {
      const int64_t column = static_cast<int64_t>(head) * shape_.attention.key_width + j;
      const int64_t width = shape_.key_columns();
      sum += a[row_a * width + column] * b[row_b * width + column];
    }
    return sum;
  }

  LayerShape shape_;
  Vector keys_, queries_;  // [rows, H Dk]
};

Vector RoundToBf16(Vector x) {
  for (double& element : x) element = reference::RoundToBf16(static_cast<float>(element));
  return x;
}

// Attention of queries [n, H Dk], keys [n, K Dk] and values [n, K Dv], which gives [n, H Dv].
struct Operands {
  Operands RoundedToBf16() const {
    return {RoundToBf16(queries), RoundToBf16(keys), RoundToBf16(values), added, weights, true};
  }

  Vector queries;
  Vector keys;
  Vector values;
  Vector added;    // added to the scores before the scale, [H, n, n]; or empty
  Vector weights;  // the weights of additive scores, [H Dk]; or empty
  bool rounds_probabilities = false;
};
Vector Attend(const LayerShape& shape, const Distances& distances, const Positions& positions,
              const Operands& operands) {
  const auto& [queries, keys, values, added, weights, rounds] = operands;
  const int64_t query_stride = shape.query_columns(), context_stride = shape.context_width();
  const int64_t key_stride = shape.key_columns(), value_stride = shape.value_columns();
  const int64_t length = static_cast<int64_t>(queries.size()) / query_stride;
  Vector context(length * context_stride, 0.0);
  const int64_t key_count = static_cast<int64_t>(keys.size()) / key_stride;
  const bool are_tokens = shape.attention.kind != AttentionKind::kLinformer;
  Vector scores(key_count);
  for (int64_t h = 0; h < shape.attention.heads; ++h) {
    const int64_t shared = h * shape.attention.kv_heads() / shape.attention.heads;
    for (int64_t s = 0; s < length; ++s) {
      const double* query = &queries[s * query_stride + h * shape.attention.key_width];
      for (int64_t t = 0; t < key_count; ++t) {
        const double* key = &keys[t * key_stride + shared * shape.attention.key_width];
        scores[t] = 0;
        for (int64_t j = 0; j < shape.attention.key_width; ++j) {
          scores[t] += weights.empty() ? query[j] * key[j]
                                       : weights[h * shape.attention.key_width + j] *
                                             std::tanh(query[j] + key[j]);
        }
        if (!added.empty()) scores[t] += added[(h * length + s) * length + t];
        scores[t] *= shape.attention.score_scale;
        if (!are_tokens) continue;
        scores[t] += distances.Of(h, positions[s], positions[t]);
        scores[t] += WindowMask(shape.attention.window, shape.attention.pattern,
                                positions.back() - positions[0] + 1, positions[s] - positions[0],
                                positions[t] - positions[0]);
        if (shape.attention.causal && t > s) scores[t] = -kInfinity;
      }
      if (IsLinear(shape.attention.kind)) {
        if (shape.attention.kind == AttentionKind::kCausalLinear)
          std::fill(scores.begin() + s + 1, scores.end(), 0.0);
      } else {
        Softmax(scores);
      }
      if (rounds) scores = RoundToBf16(std::move(scores));
      double* mixed = &context[s * context_stride + h * shape.attention.value_width];
      for (int64_t t = 0; t < key_count; ++t) {
        const double* value = &values[t * value_stride + shared * shape.attention.value_width];
        for (int64_t j = 0; j < shape.attention.value_width; ++j) mixed[j] += scores[t] * value[j];
      }
    }
  }
  return context;
}

// The weights and the forward function of one layer.
class Layer {
 public:
  Layer(const LayerShape& shape, const Weights& weights, const std::string& prefix)
      : shape_(shape),
        // Other kinds of attention are computed in float32.
        rounds_(AttendsInBf16(weights.type) && shape.attention.kind == AttentionKind::kSoftmax),
        distances_(shape, weights),
        distance_scores_(shape, weights, prefix),
        query_(weights, prefix + "query", shape.query_columns(), shape.inner_width()),
        key_(weights, prefix + "key", shape.key_columns(), shape.inner_width()),
        value_(weights, prefix + "value", shape.value_columns(), shape.value_inputs()) {
    const int64_t width = shape.inner_width();
    const auto norm = [&](const char* name) {
      return std::make_unique<Norm>(weights, prefix + name, width, shape);
    };
    const auto linear = [&](const char* name, int64_t out, int64_t in) {
      return std::make_unique<LinearLayer>(weights, prefix + name, out, in);
    };
    if (shape.attention.kind == AttentionKind::kAdditive) {
      score_weights_ = weights.Read(prefix + "score", shape.key_columns());
    }
    if (shape.attention.kind == AttentionKind::kLinformer) {
      const int64_t elements = shape.attention.linformer.keys * shape.attention.linformer.positions;
      key_mixing_ = weights.Read(prefix + "key_mixing", elements);
      value_mixing_ = weights.Read(prefix + "value_mixing", elements);
    }
    if (shape.attention.has_output_projection)
      output_ = linear("output", width, shape.context_width());
    if (shape.norms.placement != NormPlacement::kNone && shape.norms.has_attention_norm) {
      attention_norm_ = norm("attention_norm");
    }
    const bool is_sandwich = shape.norms.placement == NormPlacement::kSandwich;
    if (is_sandwich) attention_branch_norm_ = norm("attention_branch_norm");
    if (shape.extras.has_second_attention_norm) second_norm_ = norm("second_attention_norm");
    if (const QueryKeyNorms norms = shape.attention.query_key_norms;
        norms != QueryKeyNorms::kNone) {
      const auto of = [&](const char* name, int64_t columns) {
        const int64_t cols =
            norms == QueryKeyNorms::kEachHead ? shape.attention.key_width : columns;
        return std::make_unique<Norm>(weights, prefix + name, cols, shape);
      };
      query_norm_ = of("query_norm", shape.query_columns());
      key_norm_ = of("key_norm", shape.key_columns());
    }
    const auto scale = [&](const char* name) {
      return shape.extras.has_branch_scale ? weights.Read(prefix + name, width)
                                           : Vector(width, 1.0);
    };
    attention_scale_ = scale("attention_scale");
    for (int64_t i = 0; shape.feed_forward.width > 0 && i < shape.feed_forward.blocks; ++i) {
      const std::string block = FeedForwardPrefix(prefix, shape, i).substr(prefix.size());
      Block& added = blocks_.emplace_back();
      added.scale = scale((block + "feed_forward_scale").c_str());
      const int64_t inner = shape.feed_forward.width, experts = shape.feed_forward.mixture.experts;
      const auto read_products = [&](const std::string& before, Block& read) {
        if (shape.feed_forward.has_gate)
          read.gate = linear((before + "feed_forward_gate").c_str(), inner, width);
        read.in = linear((before + "feed_forward_in").c_str(), inner, width);
        read.out = linear((before + "feed_forward_out").c_str(), width, inner);
      };
      if (experts == 0) read_products(block, added);
      for (int64_t e = 0; e < experts; ++e) {
        read_products(absl::StrCat(block, "expert.", e, "."), added.experts.emplace_back());
        added.experts.back().scale = Vector(width, 1.0);
      }
      if (experts > 0) {
        added.router = std::make_unique<LinearLayer>(weights, prefix + block + "router", experts,
                                                     width, ComputeType::kF32);
        added.experts_bias = weights.Read(prefix + block + "experts_bias", width);
      }
      added.norm = norm((block + "feed_forward_norm").c_str());
      if (is_sandwich) added.branch_norm = norm((block + "feed_forward_branch_norm").c_str());
    }
    if (shape.norms.last_epsilon > 0 && !blocks_.empty()) {
      blocks_.back().norm->epsilon = shape.norms.last_epsilon;
    }
    if (const auto& [taps, groups, activation] = shape.extras.convolution; taps > 0) {
      convolution_ = {width, groups, taps,
                      weights.Read(prefix + "convolution.weight", width * width / groups * taps),
                      weights.ReadBias(prefix + "convolution.bias", width)};
      convolution_norm_ = norm("convolution_norm");
    }
    if (shape.extras.bottleneck.width == 0) return;
    const auto around = [&](const char* name, int64_t out, int64_t in) {
      const std::string norm_name = prefix + name + "_norm";
      return NormedLinear{linear(name, out, in),
                          std::make_unique<Norm>(weights, norm_name, out, shape)};
    };
    enter_ = around("bottleneck_in", width, shape.hidden_size);
    if (shape.extras.bottleneck.values_from_outside) {
      enter_attention_ = around("bottleneck_attention", width, shape.hidden_size);
    }
    leave_ = around("bottleneck_out", shape.hidden_size, width);
  }

  Vector Forward(const Vector& x, const Positions& positions) const {
    switch (shape_.norms.placement) {
      case NormPlacement::kPost: {
        const Vector inner = enter_.linear ? enter_(x) : x;
        const Vector entry = enter_attention_.linear ? enter_attention_(x) : inner;
        const Vector& values = shape_.extras.bottleneck.values_from_outside ? x : entry;
        Vector h = Apply(*attention_norm_, Sum(inner, Attention(entry, values, positions)));
        if (second_norm_) h = Apply(*second_norm_, Sum(x, h));
        for (const Block& block : blocks_) h = Apply(*block.norm, Sum(h, FeedForward(block, h)));
        if (convolution_norm_) h = Apply(*convolution_norm_, Sum(h, Convolution(x, positions)));
        return leave_.linear ? Apply(*leave_.norm, Sum(x, Apply(*leave_.linear, h))) : h;
      }
      case NormPlacement::kPre: {
        const Vector entry = Entering(x);
        Vector h = Sum(x, Attention(entry, entry, positions));
        for (const Block& block : blocks_) h = Sum(h, FeedForward(block, Apply(*block.norm, h)));
        return h;
      }
      case NormPlacement::kSandwich: {
        const Vector entry = Entering(x);
        Vector h = Sum(x, Apply(*attention_branch_norm_, Attention(entry, entry, positions)));
        for (const Block& block : blocks_) {
          h = Sum(h, Apply(*block.branch_norm, FeedForward(block, Apply(*block.norm, h))));
        }
        return h;
      }
      case NormPlacement::kNone:
        return Attention(x, x, positions);
    }
    return x;
  }

 private:
  struct NormedLinear {
    Vector operator()(const Vector& x) const { return Apply(*norm, Apply(*linear, x)); }

    std::unique_ptr<LinearLayer> linear;
    std::unique_ptr<Norm> norm;
  };
  struct Block {
    std::unique_ptr<LinearLayer> gate, in, out, router;
    std::vector<Block> experts;
    Vector experts_bias;
    std::unique_ptr<Norm> norm, branch_norm;
    Vector scale;
  };

  Vector Entering(const Vector& x) const {
    return attention_norm_ ? Apply(*attention_norm_, x) : x;
  }

  // Returns the k rows that Linformer mixes from the rows of keys or values, or these rows if there
  // is no mixing.
  Vector Mix(const char* name, const Positions& positions, const Vector& x) const {
    if (shape_.attention.kind != AttentionKind::kLinformer || positions.empty()) return x;
    const Vector& factors = name[0] == 'k' ? key_mixing_ : value_mixing_;
    const int64_t cols = static_cast<int64_t>(x.size() / positions.size());
    Vector mixed(shape_.attention.linformer.keys * cols, 0.0);
    for (int64_t i = 0; i < shape_.attention.linformer.keys; ++i) {
      for (size_t t = 0; t < positions.size(); ++t) {
        const double factor =
            factors[i * shape_.attention.linformer.positions + positions[t] - positions[0]];
        for (int64_t j = 0; j < cols; ++j) mixed[i * cols + j] += factor * x[t * cols + j];
      }
    }
    return mixed;
  }

  Vector Attention(const Vector& x, const Vector& from, const Positions& positions) const {
    Vector queries = Apply(query_, x), keys = Apply(key_, x);
    if (query_norm_) queries = Apply(*query_norm_, std::move(queries));
    if (key_norm_) keys = Apply(*key_norm_, std::move(keys));
    Vector added = distance_scores_.Of(positions, queries, keys);
    const Operands exact = {Turn(shape_, positions, std::move(queries)),
                            Mix("keys", positions, Turn(shape_, positions, std::move(keys))),
                            Mix("values", positions, Apply(value_, from)), std::move(added),
                            score_weights_};
    const Vector context =
        Attend(shape_, distances_, positions, rounds_ ? exact.RoundedToBf16() : exact);
    return output_ ? Scale(Apply(*output_, context), attention_scale_) : context;
  }

  Vector Convolution(const Vector& x, const Positions& positions) const {
    Vector y = Convolve(convolution_, x, positions);
    for (double& element : y) element = Activate(shape_.extras.convolution.activation, element);
    return y;
  }

  // Gives every row to the experts of the largest probabilities.
  Vector Mixture(const Block& block, const Vector& x) const {
    const auto width = static_cast<int64_t>(block.experts_bias.size());
    const int64_t experts = block.router->out;
    const Vector scores = Apply(*block.router, x);
    Vector y;
    for (int64_t r = 0; r * width < static_cast<int64_t>(x.size()); ++r) {
      Vector probabilities(scores.begin() + r * experts, scores.begin() + (r + 1) * experts);
      Softmax(probabilities);
      std::vector<int64_t> order(experts);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
      Vector sum = block.experts_bias;
      const Vector row(x.begin() + r * width, x.begin() + (r + 1) * width);
      for (int64_t i = 0; i < shape_.feed_forward.mixture.per_token; ++i) {
        const Vector made = FeedForward(block.experts[order[i]], row);
        sum = Sum(std::move(sum), Scale(made, {probabilities[order[i]]}));
      }
      y.insert(y.end(), sum.begin(), sum.end());
    }
    return y;
  }

  Vector FeedForward(const Block& block, const Vector& x) const {
    if (block.router) return Mixture(block, x);
    const Vector inner = Apply(*block.in, x);
    Vector outer = block.gate ? Apply(*block.gate, x) : inner;
    for (double& element : outer) element = Activate(shape_.feed_forward.activation, element);
    if (block.gate) {
      for (size_t i = 0; i < outer.size(); ++i) outer[i] *= inner[i];
    }
    return Scale(Apply(*block.out, outer), block.scale);
  }

  LayerShape shape_;
  bool rounds_;
  Distances distances_;
  DistanceScores distance_scores_;
  Vector score_weights_, key_mixing_, value_mixing_;
  LinearLayer query_;
  LinearLayer key_;
  LinearLayer value_;
  std::unique_ptr<LinearLayer> output_;
  std::unique_ptr<Norm> attention_norm_, attention_branch_norm_, second_norm_, query_norm_,
      key_norm_;
  Vector attention_scale_;
  std::vector<Block> blocks_;
  TokenConvolution convolution_ = {};
  std::unique_ptr<Norm> convolution_norm_;
  NormedLinear enter_, enter_attention_, leave_;
};

// Returns each row between its neighbours: the next row before it and the previous row after it;
// zeros at the ends.
Vector WithNeighbours(const Vector& x, int64_t width) {
  const int64_t length = static_cast<int64_t>(x.size()) / width;
  Vector wide(x.size() * 3, 0.0);
  for (int64_t r = 0; r < length; ++r) {
    for (int64_t part = 0; part < 3; ++part) {
      const int64_t from = r + 1 - part;
      if (from < 0 || from >= length) continue;
      std::copy_n(x.begin() + from * width, width, wide.begin() + (3 * r + part) * width);
    }
  }
  return wide;
}

// ESM's token dropout: masks are zeros, and the other words make up for the share of them beyond
// that of the training, 15 % * 80 %.
void LeaveOutMasks(const EmbeddingShape& shape, const std::vector<int32_t>& words, Vector& x) {
  const auto length = static_cast<double>(words.size());
  const auto masks = static_cast<double>(std::count(words.begin(), words.end(), shape.mask_id));
  for (size_t r = 0; r < words.size(); ++r) {
    const double scale = words[r] == shape.mask_id ? 0 : (1 - 0.15 * 0.8) / (1 - masks / length);
    for (int64_t c = 0; c < shape.width; ++c) x[r * shape.width + c] *= scale;
  }
}

}  // namespace

std::vector<Vector> Encoder::Encode(std::vector<Vector> sequences,
                                    std::vector<Positions> positions) const {
  const Weights weights(weights_, type_);
  for (size_t i = positions.size(); i < sequences.size(); ++i) {
    positions.emplace_back(sequences[i].size() / model_.layer.hidden_size);
    std::iota(positions[i].begin(), positions[i].end(), 0);
  }
  for (int64_t i = 0; i < model_.layers; ++i) {
    const int64_t set = model_.weight_set(i);
    const Layer layer(model_.layer_shape(set), weights, absl::StrCat("layer.", set, "."));
    for (size_t s = 0; s < sequences.size(); ++s) {
      sequences[s] = layer.Forward(sequences[s], positions[s]);
    }
  }
  if (model_.has_exit_norm) {
    const Norm norm(weights, "exit_norm", model_.layer.hidden_size, model_.layer);
    for (Vector& x : sequences) x = Apply(norm, std::move(x));
  }
  return sequences;
}

// Rounds a float32 to the type of a table, by the bits of its mantissa that the type has. float16
// has no values as small as those of tests.
double RoundToType(double x, DataType type) {
  const int kept_bits = type == DataType::kBFloat16 ? 8 : type == DataType::kFloat16 ? 11 : 24;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, kept_bits)), exponent - kept_bits);
}

Vector Encoder::Embed(const TokenSequence& ids) const {
  const Weights weights(weights_, type_);
  const EmbeddingShape& shape = *model_.embeddings;
  const int64_t length = static_cast<int64_t>(ids.words.size());
  if (length == 0) return {};
  const int64_t hidden_size = model_.layer.hidden_size;
  const auto add = [&](const std::string& name, int64_t rows, const std::vector<int32_t>& chosen,
                       Vector& x) {
    if (rows == 0) return;
    const int64_t width = static_cast<int64_t>(x.size()) / length;
    Vector table = weights.Read(name, rows * width);
    for (double& element : table) element = RoundToType(element, shape.table_type);
    if (name == "embeddings.word") {
      for (double& element : table) element *= shape.word_scale;
    }
    for (int64_t r = 0; r < length; ++r) {
      const int64_t row = chosen.empty() ? 0 : chosen[r];
      for (int64_t j = 0; j < width; ++j) x[r * width + j] += table[row * width + j];
    }
  };
  const auto add_places = [&](Vector& x) {
    add("embeddings.position", shape.positions, ids.positions, x);
    add("embeddings.token_type", shape.token_types, ids.token_types, x);
    add("embeddings.task_type", shape.task_types, {}, x);
  };
  const auto normalize = [&](Vector& x) {
    if (!shape.has_norm) return;
    LayerShape like = model_.layer;
    like.norms.epsilon = shape.norm_epsilon;
    const int64_t width = static_cast<int64_t>(x.size()) / length;
    x = Apply(Norm(weights, "embeddings.norm", width, like), std::move(x));
  };
  Vector x(length * shape.width, 0.0);
  add("embeddings.word", shape.vocabulary, ids.words, x);
  if (shape.mask_id >= 0) LeaveOutMasks(shape, ids.words, x);
  if (!shape.projects_words) add_places(x);
  if (!shape.norm_is_last) normalize(x);
  if (shape.has_neighbours) x = WithNeighbours(x, shape.width);
  if (shape.projected(hidden_size)) {
    const LinearLayer projection(weights, "embeddings.projection", hidden_size,
                                 shape.projected_from());
    x = Apply(projection, x);
  }
  if (shape.projects_words) add_places(x);
  if (shape.norm_is_last) normalize(x);
  return x;
}

}  // namespace attendant::reference
