// Micro-benchmarks of the engine's kernels on the whole team. They take the flags of Google
// Benchmark.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/gemm/packed_input_buffer.h"
#include "engine/kernels/norm/norm.h"
#include "engine/kernels/rope.h"
#include "engine/kernels/row_tiles.h"
#include "tests/bench/counters.h"
#include "tests/bench/kernel_operands.h"

namespace attendant::bench {
namespace {

using benchmark::State;

void Linear(State& state, const LinearShape& shape) {
  Linears& layers = LinearsOf(12, shape);
  Matrix x(PaddedRows(shape.rows), shape.in), y(PaddedRows(shape.rows), shape.out);
  for (auto _ : state) layers.Apply(x.view(), y.view(), Activation::kIdentity);
  state.counters["flops"] = PerSecond(2.0 * static_cast<double>(shape.rows * shape.in * shape.out));
}

void AttentionOfLength(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(1), length = state.range(2);
  const int64_t sequences = std::max<int64_t>(1, 512 / length);
  AttentionCase operands(sequences, length, ShapeOf(heads, width, type));
  for (auto _ : state) operands.Run();
  state.counters["flops"] =
      PerSecond(4.0 * static_cast<double>(sequences * heads * width * length * length));
}

// Causal, with heads that share keys and values; as many flops are counted as the mask leaves.
void CausalAttention(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(2), length = state.range(3);
  const int64_t sequences = std::max<int64_t>(1, 512 / length);
  AttentionShape shape = ShapeOf(heads, width, type);
  if (state.range(1) < heads) shape.key_value_heads = state.range(1);
  shape.causal = true;
  AttentionCase operands(sequences, length, shape);
  for (auto _ : state) operands.Run();
  const int64_t pairs = length * (length + 1) / 2;
  state.counters["flops"] = PerSecond(4.0 * static_cast<double>(sequences * heads * width * pairs));
}

// One sequence, as in ModernBERT's local layers, where the time per token does not grow with the
// length.
void AttentionInWindow(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(1), window = state.range(2),
                length = state.range(3);
  AttentionShape shape = ShapeOf(heads, width, type);
  shape.window = window;
  AttentionCase operands(1, length, shape);
  for (auto _ : state) operands.Run();
  const int64_t pairs = length * (2 * window + 1) - window * (window + 1);
  state.counters["flops"] = PerSecond(4.0 * static_cast<double>(heads * width * pairs));
}

// This many pairs for each block of queries, with keys all over the sequence.
BlockLists ListPairs(int64_t blocks, int64_t listed) {
  std::vector<BlockPair> pairs;
  for (int64_t query = 0; query < blocks; ++query) {
    for (int64_t i = 0; i < listed; ++i) {
      pairs.push_back({query, (query * 37 + i * blocks / listed + 5) % blocks});
    }
  }
  return BlockLists(std::move(pairs));
}

// As in BigBird: blocks of 64 that see their neighbours, the first, the last and some from a list.
void AttentionInBlocks(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(1), listed = state.range(2),
                length = state.range(3);
  AttentionShape shape = ShapeOf(heads, width, type);
  shape.window = 1;
  shape.pattern = {
      .block = 64, .first_global = 1, .last_global = 1, .listed = ListPairs(length / 64, listed)};
  AttentionCase operands(1, length, shape);
  for (auto _ : state) operands.Run();
  const int64_t pairs = (5 + listed) * 64 * length + 2 * 64 * (length - 5 * 64);
  state.counters["flops"] = PerSecond(4.0 * static_cast<double>(heads * width * pairs));
}

// As in DeBERTa v3: 512 rows of distances, against queries and against keys.
void DisentangledAttention(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(1), length = state.range(2);
  AttentionShape shape = ShapeOf(heads, width, type);
  shape.relative_rows = 512;
  const int64_t sequences = std::max<int64_t>(1, 512 / length);
  AttentionCase operands(sequences, length, shape);
  for (auto _ : state) operands.Run();
  state.counters["flops"] =
      PerSecond(4.0 * static_cast<double>(sequences * heads * width * length * length));
}

void LinearAttention(State& state, ComputeType type) {
  const int64_t heads = state.range(0), width = state.range(1), length = state.range(2);
  AttentionShape shape = ShapeOf(heads, width, type);
  shape.kind = AttentionKind::kLinear;
  AttentionCase operands(1, length, shape);
  for (auto _ : state) operands.Run();
  state.counters["flops"] = PerSecond(4.0 * static_cast<double>(heads * width * width * length));
}

void ResidualNorm(State& state) {
  Matrix x(512, state.range(0)), residual(512, state.range(0)), y(512, state.range(0));
  const std::vector<float> gamma(static_cast<size_t>(state.range(0)), 1.0f);
  const LayerNormWeights weights{.gamma = gamma, .beta = gamma, .epsilon = 1e-12f};
  for (auto _ : state) AddLayerNorm(Team(), x.view(), residual.view(), weights, y.view());
  state.counters["elements"] = PerSecond(512.0 * static_cast<double>(state.range(0)));
}

// As above, with the operand that the next product reads from the rows, made in one pass or
// afterwards.
void ResidualNormAndOperand(State& state, ComputeType type, bool in_one_pass) {
  const int64_t width = state.range(0), rows = state.range(1);
  Matrix x(rows, width), residual(rows, width), y(rows, width);
  const std::vector<float> gamma(static_cast<size_t>(width), 1.0f);
  const LayerNormWeights weights{.gamma = gamma, .beta = gamma, .epsilon = 1e-12f};
  const PackedInputLayout layout = {{.type = type}, width, width};
  PackedInputBuffer buffer(Team().size());
  buffer.Reserve(layout, PaddedRows(rows));
  for (auto _ : state) {
    const PackedInput packed = buffer.Begin(layout, rows);
    const PreparedRows target(y.view(), in_one_pass ? packed : PackedInput());
    AddLayerNorm(Team(), x.view(), residual.view(), weights, target);
    if (in_one_pass) continue;
    ForRowTiles(Team(), rows, [&](int worker, int64_t begin, int64_t count) {
      for (int64_t r = begin; r < begin + count; ++r) {
        packed.WriteRows(worker, r, {y.view().row(r), 1, width, width});
      }
    });
  }
  state.counters["elements"] = PerSecond(static_cast<double>(rows * width));
}

void Activating(State& state, Activation activation) {
  Matrix x(64, 3072);
  for (auto _ : state) {
    state.PauseTiming();
    x.Fill();
    state.ResumeTiming();
    Activate(activation, x.view());
  }
  state.counters["elements"] = PerSecond(64.0 * 3072);
}

void ReadingFrom(State& state, DataType type) {
  constexpr int64_t kCount = 128 * 768;
  const std::vector<char> source(static_cast<size_t>(kCount * ByteWidth(type)));
  std::vector<float> target(kCount);
  for (auto _ : state) ToFloat(type, source.data(), kCount, target.data());
  state.counters["elements"] = PerSecond(kCount);
}

void WritingTo(State& state, DataType type) {
  constexpr int64_t kCount = 128 * 768;
  const std::vector<float> source(kCount, 1.5f);
  std::vector<char> target(static_cast<size_t>(kCount * ByteWidth(type)));
  for (auto _ : state) FromFloat(source.data(), kCount, type, target.data());
  state.counters["elements"] = PerSecond(kCount);
}

// Conversion of rows into the operand of a product of another type.
void MakingOperands(State& state, const ComputeMode& mode) {
  const int64_t rows = 128, width = state.range(0);
  Matrix x(rows, width);
  AlignedBuffer<float> scratch(width);
  AlignedBuffer<char> target(width * InputElementBytes(mode));
  const ConversionTarget part = {target.data(), target.size() / InputParts(mode)};
  for (auto _ : state) {
    for (int64_t row = 0; row < rows; ++row) {
      benchmark::DoNotOptimize(ConvertInput(mode, x.view().row(row), width, scratch.data(), part));
    }
  }
  state.counters["elements"] = PerSecond(static_cast<double>(rows * width));
}

// Rotation of queries or keys, as in ModernBERT.
void RotatingHeads(State& state, RotaryPairs pairs) {
  constexpr int64_t kTokens = 512, kHeads = 12, kWidth = 64;
  Matrix heads(kTokens, kHeads * kWidth);
  const RotaryTable table(kTokens, {RotaryFrequencies(kWidth, 10000.0f), 1, pairs});
  std::vector<int32_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  for (auto _ : state) Rotate(table, positions, kWidth, heads.view());
  state.counters["elements"] = PerSecond(kTokens * kHeads * kWidth);
}

const bool linears_registered = [] {
  const std::vector<std::pair<int64_t, int64_t>> widths = {
      {768, 2304}, {768, 768}, {768, 3072}, {3072, 768}, {384, 1152}, {384, 1536}, {1536, 384}};
  for (const ComputeType type : SupportedTypes()) {
    for (const auto& [in, out] : widths) {
      for (const int64_t rows : {16, 128, 1024}) {
        const std::string name =
            absl::StrCat("Linear/", Name(type), "/in:", in, "/out:", out, "/rows:", rows);
        const LinearShape shape{type, in, out, rows};
        benchmark::RegisterBenchmark(name.c_str(), [shape](State& state) {
          Linear(state, shape);
        })->UseRealTime();
      }
    }
  }
  return true;
}();

const bool attentions_registered = [] {
  for (const ComputeType type : SupportedTypes()) {
    benchmark::RegisterBenchmark(absl::StrCat("Attention/", Name(type)).c_str(),
                                 [type](State& state) { AttentionOfLength(state, type); })
        ->ArgNames({"heads", "width", "length"})
        ->ArgsProduct({{12}, {32, 64}, {16, 64, 128, 512}})
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat("CausalAttention/", Name(type)).c_str(),
                                 [type](State& state) { CausalAttention(state, type); })
        ->ArgNames({"heads", "shared", "width", "length"})
        ->ArgsProduct({{16}, {2, 8, 16}, {128}, {16, 64, 128, 512, 2048}})
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat("AttentionInWindow/", Name(type)).c_str(),
                                 [type](State& state) { AttentionInWindow(state, type); })
        ->ArgNames({"heads", "width", "window", "length"})
        ->ArgsProduct({{12}, {64}, {64}, {512, 1024, 2048, 4096, 8192}})
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat("AttentionInBlocks/", Name(type)).c_str(),
                                 [type](State& state) { AttentionInBlocks(state, type); })
        ->ArgNames({"heads", "width", "listed", "length"})
        ->ArgsProduct({{12}, {64}, {0, 3}, {1024, 2048, 4096, 8192}})
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat("DisentangledAttention/", Name(type)).c_str(),
                                 [type](State& state) { DisentangledAttention(state, type); })
        ->ArgNames({"heads", "width", "length"})
        ->ArgsProduct({{12}, {64}, {16, 64, 128, 512, 2048}})
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat("LinearAttention/", Name(type)).c_str(),
                                 [type](State& state) { LinearAttention(state, type); })
        ->ArgNames({"heads", "width", "length"})
        ->ArgsProduct({{12}, {64}, {512, 8192}})
        ->UseRealTime();
  }
  return true;
}();

// Emulated where the CPU has no units for the type, with the same roundings into float32.
const bool operands_registered = [] {
  for (const ComputeType type : kComputeTypes) {
    if (type == ComputeType::kF32) continue;
    const ComputeMode mode{.type = type, .emulate = !CheckComputeMode({.type = type}).ok()};
    const std::string name =
        absl::StrCat("MakingOperands/", Name(type), mode.emulate ? "-emulated" : "");
    benchmark::RegisterBenchmark(name.c_str(),
                                 [mode](State& state) { MakingOperands(state, mode); })
        ->ArgName("width")
        ->Arg(384)
        ->Arg(768)
        ->Arg(3072);
  }
  return true;
}();

// The roundings into the type itself, which need no units for it.
const bool norms_registered = [] {
  for (const ComputeType type : {ComputeType::kBf16, ComputeType::kInt8}) {
    for (const bool in_one_pass : {false, true}) {
      const std::string name = absl::StrCat("ResidualNormAndOperand/", Name(type),
                                            in_one_pass ? "/in_one_pass" : "/apart");
      benchmark::RegisterBenchmark(
          name.c_str(), [=](State& state) { ResidualNormAndOperand(state, type, in_one_pass); })
          ->ArgNames({"width", "rows"})
          ->ArgsProduct({{768}, {128, 1024, 4096}})
          ->UseRealTime();
    }
  }
  return true;
}();

BENCHMARK(ResidualNorm)->ArgName("width")->Arg(384)->Arg(768)->Arg(1024)->UseRealTime();
BENCHMARK_CAPTURE(RotatingHeads, halves, RotaryPairs::kHalves)->UseRealTime();
BENCHMARK_CAPTURE(RotatingHeads, interleaved, RotaryPairs::kInterleaved)->UseRealTime();
BENCHMARK_CAPTURE(Activating, gelu, Activation::kGelu);
BENCHMARK_CAPTURE(Activating, gelu_tanh, Activation::kGeluTanh);
BENCHMARK_CAPTURE(Activating, silu, Activation::kSilu);
BENCHMARK_CAPTURE(ReadingFrom, float32, DataType::kFloat32);
BENCHMARK_CAPTURE(ReadingFrom, float16, DataType::kFloat16);
BENCHMARK_CAPTURE(ReadingFrom, bfloat16, DataType::kBFloat16);
BENCHMARK_CAPTURE(WritingTo, float16, DataType::kFloat16);
BENCHMARK_CAPTURE(WritingTo, bfloat16, DataType::kBFloat16);

}  // namespace
}  // namespace attendant::bench

BENCHMARK_MAIN();
