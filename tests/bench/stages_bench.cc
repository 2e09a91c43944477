// Micro-benchmarks, part of kernels_bench, of each stage of a layer at the shapes of the models'
// layers ("stage/CASE.TYPE/STAGE"), and of its bound ("bound/CASE.TYPE/STAGE"): a plain product of
// oneDNN, or the plainest pass over the same memory. Attention has no bound of its own; the report
// compares it with the roof of its type, the fastest plain product ("roof/TYPE" among them).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/rounding.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/norm/norm.h"
#include "tests/bench/counters.h"
#include "tests/bench/gemm_bound.h"
#include "tests/bench/kernel_operands.h"

namespace attendant::bench {
namespace {

using benchmark::State;

struct LayerCase {
  std::string name;
  int64_t hidden_size;  // E
  int64_t heads;
  int64_t feed_forward_width;  // F
  int layers;
  int64_t sequences;
  int64_t length;

  int64_t tokens() const { return sequences * length; }
};

double Flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows * shape.in * shape.out);
}

void LinearStage(State& state, int layers_of_model, const LinearShape& shape) {
  Linears& layers = LinearsOf(layers_of_model, shape);
  Matrix x(PaddedRows(shape.rows), shape.in), y(PaddedRows(shape.rows), shape.out);
  for (auto _ : state) layers.Apply(x.view(), y.view(), Activation::kIdentity);
  state.counters["flops"] = PerSecond(Flops(shape));
}

// Returns the plain products of the last shape that was asked for, as LinearsOf does.
GemmBound& BoundOf(int layers_of_model, const LinearShape& shape) {
  static std::pair<int, LinearShape> key;
  static std::unique_ptr<GemmBound> bound;
  if (bound == nullptr || key != std::pair(layers_of_model, shape)) {
    bound = nullptr;
    const GemmBound::Plan plan = {.layers = layers_of_model,
                                  .widths = {{shape.in, shape.out}},
                                  .type = shape.type,
                                  .threads = Team().size(),
                                  .split = GemmBound::Split::kTeam,
                                  .row_multiple = kRowTile};
    bound = std::make_unique<GemmBound>(plan, std::vector<int64_t>{shape.rows});
    key = {layers_of_model, shape};
  }
  return *bound;
}

// An iteration is a product in each layer.
void LinearBound(State& state, int layers_of_model, const LinearShape& shape) {
  GemmBound& bound = BoundOf(layers_of_model, shape);
  for (auto _ : state) bound.Run(shape.rows);
  state.counters["flops"] = PerSecond(layers_of_model * Flops(shape));
}

void AttentionStage(State& state, const LayerCase& layer, ComputeType type) {
  AttentionCase operands(layer.sequences, layer.length,
                         ShapeOf(layer.heads, layer.hidden_size / layer.heads, type));
  for (auto _ : state) operands.Run();
  state.counters["flops"] =
      PerSecond(4.0 * static_cast<double>(layer.tokens() * layer.length * layer.hidden_size));
}

// One of the two norms of a layer, or as its bound the addition alone: either reads two rows and
// writes one.
void NormStage(State& state, const LayerCase& layer, bool bound) {
  Matrix x(layer.tokens(), layer.hidden_size), residual(layer.tokens(), layer.hidden_size);
  const std::vector<float> gamma(static_cast<size_t>(layer.hidden_size), 1.0f);
  const LayerNormWeights weights{.gamma = gamma, .beta = gamma, .epsilon = 1e-12f};
  const MatrixView<float> y = residual.view();
  for (auto _ : state) {
    if (bound) {
      Add(Team(), x.view(), y, y);
    } else {
      AddLayerNorm(Team(), x.view(), y, weights, y);
    }
  }
  state.counters["bytes"] = PerSecond(12.0 * static_cast<double>(y.rows * y.cols));
}

// GELU in blocks of rows, as a product applies it to its fresh results, or as its bound ReLU.
void ActivationStage(State& state, const LayerCase& layer, Activation activation) {
  constexpr int64_t kBlock = 64;
  const int64_t blocks = CeilDivide(layer.tokens(), kBlock);
  std::vector<Matrix> in_cache;
  for (int i = 0; i < Team().size(); ++i) in_cache.emplace_back(kBlock, layer.feed_forward_width);
  for (auto _ : state) {
    Team().ParallelFor(blocks, [&](int worker, int64_t block) {
      const int64_t rows = std::min(kBlock, layer.tokens() - block * kBlock);
      Activate(activation, in_cache[worker].view().Rows(0, rows));
    });
  }
  state.counters["bytes"] =
      PerSecond(8.0 * static_cast<double>(layer.tokens() * layer.feed_forward_width));
}

void RegisterStage(const std::string& name, std::function<void(State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void Register(const LayerCase& layer, ComputeType type) {
  const int64_t e = layer.hidden_size, f = layer.feed_forward_width;
  const std::string suffix = absl::StrCat("/", layer.name, ".", Name(type), "/");
  const std::string stage = "stage" + suffix, bound = "bound" + suffix;
  const auto add_linear = [&](const char* name, int64_t in, int64_t out) {
    const LinearShape shape = {type, in, out, layer.tokens()};
    RegisterStage(stage + name, [=](State& state) { LinearStage(state, layer.layers, shape); });
    RegisterStage(bound + name, [=](State& state) { LinearBound(state, layer.layers, shape); });
  };
  add_linear("qkv", e, 3 * e);
  RegisterStage(stage + "attention", [=](State& state) { AttentionStage(state, layer, type); });
  add_linear("output", e, e);
  RegisterStage(stage + "norm", [=](State& state) { NormStage(state, layer, false); });
  RegisterStage(bound + "norm", [=](State& state) { NormStage(state, layer, true); });
  add_linear("ff1", e, f);
  RegisterStage(stage + "activation",
                [=](State& state) { ActivationStage(state, layer, Activation::kGelu); });
  RegisterStage(bound + "activation",
                [=](State& state) { ActivationStage(state, layer, Activation::kRelu); });
  add_linear("ff2", f, e);
}

const bool registered = [] {
  for (const LayerCase& layer : {LayerCase{"bert-base.8x128", 768, 12, 3072, 12, 8, 128},
                                 LayerCase{"bert-base.8x512", 768, 12, 3072, 12, 8, 512},
                                 LayerCase{"bert-base.4x2048", 768, 12, 3072, 12, 4, 2048},
                                 LayerCase{"bert-base.1x16", 768, 12, 3072, 12, 1, 16},
                                 LayerCase{"minilm-l6.8x128", 384, 12, 1536, 6, 8, 128},
                                 LayerCase{"minilm-l6.1x16", 384, 12, 1536, 6, 1, 16}}) {
    for (const ComputeType type : SupportedTypes()) Register(layer, type);
  }
  for (const ComputeType type : SupportedTypes()) {
    RegisterStage(absl::StrCat("roof/", Name(type)), [=](State& state) {
      LinearBound(state, 1, {type, 768, 3072, 1024});
    });
  }
  return true;
}();

}  // namespace
}  // namespace attendant::bench
