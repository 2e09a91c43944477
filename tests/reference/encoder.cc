#include "tests/reference/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "tests/reference/reference.h"
#include "tests/reference/relative_positions.h"

namespace attendant::reference {
namespace {

using Vector = std::vector<double>;

// Weights of one model, in float64, by canonical name.
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

  // Zeros if the model has none.
  Vector ReadBias(const std::string& name, int64_t elements) const {
    return source_.Has(name) ? Read(name, elements) : Vector(elements, 0.0);
  }

  const ComputeType type;

 private:
  WeightSource& source_;
};

// Rows as operands of a product; as they are in kF32.
using Rounding = Matrix (*)(ComputeType, MatrixView<const float>);
Vector Round(Rounding rounding, ComputeType type, const Vector& values, int64_t cols) {
  if (type == ComputeType::kF32) return values;
  const std::vector<float> floats(values.begin(), values.end());
  const int64_t rows = static_cast<int64_t>(values.size()) / cols;
  const Matrix rounded = rounding(type, {floats.data(), rows, cols, cols});
  Vector result(values.size());
  for (int64_t i = 0; i < rows * cols; ++i) result[i] = rounded(i / cols, i % cols);
  return result;
}

struct LinearLayer {
  LinearLayer(const Weights& weights, const std::string& name, int64_t outs, int64_t ins)
      : type(weights.type),
        out(outs),
        in(ins),
        transposed(outs * ins),
        bias(weights.ReadBias(name + ".bias", outs)) {
    const Vector weight =
        Round(WeightOperand, type, weights.Read(name + ".weight", outs * ins), ins);
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) transposed[i * out + o] = weight[o * in + i];
    }
  }

  ComputeType type;
  int64_t out;
  int64_t in;
  Vector transposed;  // [in, out]
  Vector bias;        // [out]
};

// y = x W^T + b. Four rows at a time share what is read of the weight.
Vector Apply(const LinearLayer& linear, const Vector& values) {
  constexpr int64_t kRows = 4;
  const Vector x = Round(InputOperand, linear.type, values, linear.in);
  const int64_t rows = static_cast<int64_t>(x.size()) / linear.in;
  Vector y(rows * linear.out);
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t end = std::min(rows, begin + kRows);
    for (int64_t r = begin; r < end; ++r) {
      std::copy(linear.bias.begin(), linear.bias.end(), y.begin() + r * linear.out);
    }
    for (int64_t i = 0; i < linear.in; ++i) {
      const double* __restrict weight = linear.transposed.data() + i * linear.out;
      for (int64_t r = begin; r < end; ++r) {
        double* __restrict sums = y.data() + r * linear.out;
        const double factor = x[r * linear.in + i];
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
        epsilon(layer.norm_epsilon),
        kind(layer.norm_kind) {}

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

Vector Apply(const Norm& norm, Vector x) {
  if (norm.kind == NormKind::kRms) return ApplyRms(norm, std::move(x));
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

// Every row times `by`.
Vector Scale(Vector x, const Vector& by) {
  for (size_t i = 0; i < x.size(); ++i) x[i] *= by[i % by.size()];
  return x;
}

// softmax of scores, in place.
void Softmax(Vector& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

// What distance adds to the scores of each head.
class Distances {
 public:
  Distances(const LayerShape& shape, const Weights& weights)
      : shape_(shape.relative_positions), heads_(shape.heads) {
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

// Where each token of a sequence is.
using Positions = std::vector<int32_t>;

// Queries or keys [n, H Dk]: pairs of columns as points of a plane, turned by their position.
Vector Turn(const LayerShape& shape, const Positions& positions, Vector x) {
  const RelativePositionShape& relative = shape.relative_positions;
  if (relative.kind != RelativePositions::kRotary) return x;
  const int64_t pairs = relative.rotary_width / 2;
  const bool halves = relative.rotary_pairs == RotaryPairs::kHalves;
  for (size_t s = 0; s < positions.size(); ++s) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      double* head = &x[(s * shape.heads + h) * shape.key_width];
      for (int64_t j = 0; j < pairs; ++j) {
        double& a = head[halves ? j : 2 * j];
        double& b = head[halves ? j + pairs : 2 * j + 1];
        const double angle =
            positions[s] / std::pow(relative.rotary_theta, static_cast<double>(j) / pairs);
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }
  return x;
}

Vector RoundToBf16(Vector x) {
  for (double& element : x) element = reference::RoundToBf16(static_cast<float>(element));
  return x;
}

// Queries and keys [n, H Dk], values [n, H Dv] -> [n, H Dv].
struct Operands {
  Operands RoundedToBf16() const {
    return {RoundToBf16(queries), RoundToBf16(keys), RoundToBf16(values), true};
  }

  Vector queries;
  Vector keys;
  Vector values;
  bool rounds_probabilities = false;
};
Vector Attend(const LayerShape& shape, const Distances& distances, const Positions& positions,
              const Operands& operands) {
  const auto& [queries, keys, values, rounds] = operands;
  const int64_t key_stride = shape.heads * shape.key_width;
  const int64_t value_stride = shape.heads * shape.value_width;
  const int64_t length = static_cast<int64_t>(queries.size()) / key_stride;
  Vector context(length * value_stride, 0.0);
  Vector scores(length);
  for (int64_t h = 0; h < shape.heads; ++h) {
    for (int64_t s = 0; s < length; ++s) {
      const double* query = &queries[s * key_stride + h * shape.key_width];
      for (int64_t t = 0; t < length; ++t) {
        const double* key = &keys[t * key_stride + h * shape.key_width];
        scores[t] = 0;
        for (int64_t j = 0; j < shape.key_width; ++j) scores[t] += query[j] * key[j];
        scores[t] *= shape.score_scale;
        scores[t] += distances.Of(h, positions[s], positions[t]);
        const int64_t distance = std::abs(positions[s] - positions[t]);
        if (shape.window > 0 && distance > shape.window) scores[t] = -HUGE_VAL;
      }
      Softmax(scores);
      if (rounds) scores = RoundToBf16(std::move(scores));
      double* mixed = &context[s * value_stride + h * shape.value_width];
      for (int64_t t = 0; t < length; ++t) {
        const double* value = &values[t * value_stride + h * shape.value_width];
        for (int64_t j = 0; j < shape.value_width; ++j) mixed[j] += scores[t] * value[j];
      }
    }
  }
  return context;
}

// One layer's weights and forward function.
class Layer {
 public:
  Layer(const LayerShape& shape, const Weights& weights, const std::string& prefix)
      : shape_(shape),
        rounds_(weights.type != ComputeType::kF32),
        distances_(shape, weights),
        query_(weights, prefix + "query", shape.heads * shape.key_width, shape.hidden_size),
        key_(weights, prefix + "key", shape.heads * shape.key_width, shape.hidden_size),
        value_(weights, prefix + "value", shape.context_width(), shape.hidden_size) {
    const int64_t width = shape.hidden_size;
    const auto norm = [&](const char* name) {
      return std::make_unique<Norm>(weights, prefix + name, width, shape);
    };
    const auto linear = [&](const char* name, int64_t out, int64_t in) {
      return std::make_unique<LinearLayer>(weights, prefix + name, out, in);
    };
    if (shape.has_output_projection) output_ = linear("output", width, shape.context_width());
    if (shape.norm_placement != NormPlacement::kNone && shape.has_attention_norm) {
      attention_norm_ = norm("attention_norm");
    }
    if (shape.has_second_attention_norm) second_norm_ = norm("second_attention_norm");
    if (shape.has_query_key_norms) {
      const int64_t keys = shape.heads * shape.key_width;
      query_norm_ = std::make_unique<Norm>(weights, prefix + "query_norm", keys, shape);
      key_norm_ = std::make_unique<Norm>(weights, prefix + "key_norm", keys, shape);
    }
    const auto scale = [&](const char* name) {
      return shape.has_branch_scale ? weights.Read(prefix + name, width) : Vector(width, 1.0);
    };
    attention_scale_ = scale("attention_scale");
    if (shape.feed_forward_width == 0) return;
    feed_forward_scale_ = scale("feed_forward_scale");
    if (shape.has_gate) gate_ = linear("feed_forward_gate", shape.feed_forward_width, width);
    in_ = linear("feed_forward_in", shape.feed_forward_width, width);
    out_ = linear("feed_forward_out", width, shape.feed_forward_width);
    feed_forward_norm_ = norm("feed_forward_norm");
  }

  Vector Forward(const Vector& x, const Positions& positions) const {
    switch (shape_.norm_placement) {
      case NormPlacement::kPost: {
        const Vector h = Apply(*attention_norm_, Sum(x, Attention(x, positions)));
        const Vector entering = second_norm_ ? Apply(*second_norm_, Sum(x, h)) : h;
        return in_ ? Apply(*feed_forward_norm_, Sum(entering, FeedForward(entering))) : entering;
      }
      case NormPlacement::kPre: {
        const Vector h = Sum(x, Attention(Entering(x), positions));
        return in_ ? Sum(h, FeedForward(Apply(*feed_forward_norm_, h))) : h;
      }
      case NormPlacement::kNone:
        return Attention(x, positions);
    }
    return x;
  }

 private:
  Vector Entering(const Vector& x) const {
    return attention_norm_ ? Apply(*attention_norm_, x) : x;
  }

  Vector Attention(const Vector& x, const Positions& positions) const {
    Vector queries = Apply(query_, x), keys = Apply(key_, x);
    if (query_norm_) queries = Apply(*query_norm_, std::move(queries));
    if (key_norm_) keys = Apply(*key_norm_, std::move(keys));
    const Operands exact = {Turn(shape_, positions, std::move(queries)),
                            Turn(shape_, positions, std::move(keys)), Apply(value_, x)};
    const Vector context =
        Attend(shape_, distances_, positions, rounds_ ? exact.RoundedToBf16() : exact);
    return output_ ? Scale(Apply(*output_, context), attention_scale_) : context;
  }

  Vector FeedForward(const Vector& x) const {
    const Vector inner = Apply(*in_, x);
    Vector outer = gate_ ? Apply(*gate_, x) : inner;
    for (double& element : outer) element = Activate(shape_.activation, element);
    if (gate_) {
      for (size_t i = 0; i < outer.size(); ++i) outer[i] *= inner[i];
    }
    return Scale(Apply(*out_, outer), feed_forward_scale_);
  }

  LayerShape shape_;
  bool rounds_;
  Distances distances_;
  LinearLayer query_;
  LinearLayer key_;
  LinearLayer value_;
  std::unique_ptr<LinearLayer> output_;
  std::unique_ptr<Norm> attention_norm_, second_norm_, query_norm_, key_norm_;
  Vector attention_scale_;
  std::unique_ptr<LinearLayer> gate_;
  std::unique_ptr<LinearLayer> in_;
  std::unique_ptr<LinearLayer> out_;
  std::unique_ptr<Norm> feed_forward_norm_;
  Vector feed_forward_scale_;
};

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

Vector Encoder::Embed(const TokenSequence& ids) const {
  const Weights weights(weights_, type_);
  const EmbeddingShape& shape = *model_.embeddings;
  const int64_t length = static_cast<int64_t>(ids.words.size());
  Vector x(length * shape.width, 0.0);
  const auto add = [&](const std::string& name, int64_t rows, const std::vector<int32_t>& chosen) {
    if (rows == 0) return;
    const Vector table = weights.Read(name, rows * shape.width);
    for (int64_t r = 0; r < length; ++r) {
      const int64_t row = chosen.empty() ? 0 : chosen[r];
      for (int64_t j = 0; j < shape.width; ++j) {
        x[r * shape.width + j] += table[row * shape.width + j];
      }
    }
  };
  add("embeddings.word", shape.vocabulary, ids.words);
  add("embeddings.position", shape.positions, ids.positions);
  add("embeddings.token_type", shape.token_types, ids.token_types);
  if (shape.has_norm) {
    LayerShape like = model_.layer;
    like.norm_epsilon = shape.norm_epsilon;
    x = Apply(Norm(weights, "embeddings.norm", shape.width, like), std::move(x));
  }
  const int64_t hidden_size = model_.layer.hidden_size;
  if (shape.width == hidden_size && !shape.always_projected) return x;
  return Apply(LinearLayer(weights, "embeddings.projection", hidden_size, shape.width), x);
}

}  // namespace attendant::reference
