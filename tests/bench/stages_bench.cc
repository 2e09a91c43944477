// Micro-benchmarks, part of kernels_bench, of each stage of a layer at the shapes of the models'
// layers.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/rounding.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/norm/norm.h"
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

void LinearStage(State& state, int layers_of_model, const LinearShape& shape) {
  Linears& layers = LinearsOf(layers_of_model, shape);
  Matrix x(PaddedRows(shape.rows), shape.in), y(PaddedRows(shape.rows), shape.out);
  for (auto _ : state) layers.Apply(x.view(), y.view(), Activation::kIdentity);
}

void AttentionStage(State& state, const LayerCase& layer, ComputeType type) {
  AttentionCase operands(layer.sequences, layer.length,
                         ShapeOf(layer.heads, layer.hidden_size / layer.heads, type));
  for (auto _ : state) operands.Run();
}

// One of the two norms of a layer.
void NormStage(State& state, const LayerCase& layer) {
  Matrix x(layer.tokens(), layer.hidden_size), residual(layer.tokens(), layer.hidden_size);
  const std::vector<float> gamma(static_cast<size_t>(layer.hidden_size), 1.0f);
  const LayerNormWeights weights{.gamma = gamma, .beta = gamma, .epsilon = 1e-12f};
  for (auto _ : state) AddLayerNorm(Team(), x.view(), residual.view(), weights, residual.view());
}

// In blocks of rows, as a product applies it to its fresh results.
void ActivationStage(State& state, const LayerCase& layer) {
  constexpr int64_t kBlock = 64;
  const int64_t blocks = CeilDivide(layer.tokens(), kBlock);
  std::vector<Matrix> in_cache;
  for (int i = 0; i < Team().size(); ++i) in_cache.emplace_back(kBlock, layer.feed_forward_width);
  for (auto _ : state) {
    Team().ParallelFor(blocks, [&](int worker, int64_t block) {
      const int64_t rows = std::min(kBlock, layer.tokens() - block * kBlock);
      Activate(Activation::kGelu, in_cache[worker].view().Rows(0, rows));
    });
  }
}

void Register(const LayerCase& layer, ComputeType type) {
  const int64_t e = layer.hidden_size, f = layer.feed_forward_width;
  const std::string prefix = absl::StrCat("stage/", layer.name, ".", Name(type), "/");
  const auto add = [&](const std::string& stage, auto&& body) {
    benchmark::RegisterBenchmark((prefix + stage).c_str(),
                                 [layer, body](State& state) { body(state, layer); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  const auto linear = [type](int64_t in, int64_t out) {
    return [=](State& state, const LayerCase& which) {
      LinearStage(state, which.layers, {type, in, out, which.tokens()});
    };
  };
  add("qkv", linear(e, 3 * e));
  add("attention",
      [type](State& state, const LayerCase& which) { AttentionStage(state, which, type); });
  add("output", linear(e, e));
  add("norm", NormStage);
  add("ff1", linear(e, f));
  add("activation", ActivationStage);
  add("ff2", linear(f, e));
}

const bool registered = [] {
  for (const LayerCase& layer : {LayerCase{"bert-base.8x128", 768, 12, 3072, 12, 8, 128},
                                 LayerCase{"bert-base.8x512", 768, 12, 3072, 12, 8, 512},
                                 LayerCase{"bert-base.1x16", 768, 12, 3072, 12, 1, 16},
                                 LayerCase{"minilm-l6.8x128", 384, 12, 1536, 6, 8, 128}}) {
    for (const ComputeType type : SupportedTypes()) Register(layer, type);
  }
  return true;
}();

}  // namespace
}  // namespace attendant::bench
