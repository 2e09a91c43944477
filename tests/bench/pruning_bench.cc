// Micro-benchmarks, part of kernels_bench, of a layer's attention block by the number of heads that
// pruning or a gate leaves.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/layers/encoder.h"
#include "tests/bench/kernel_operands.h"

namespace attendant::bench {
namespace {

using benchmark::State;

constexpr int64_t kHeads = 12;
constexpr int64_t kSequences = 8;
constexpr int64_t kLength = 128;

// Returns the first layer of bert-base without its last heads.
EncoderRun RunWithout(int64_t pruned) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / absl::StrCat("attendant-prune-", ::getpid());
  std::vector<int64_t> heads(pruned);
  std::iota(heads.begin(), heads.end(), kHeads - pruned);
  std::ofstream(file) << "{\"0\": [" << absl::StrJoin(heads, ", ") << "]}";
  CheckpointOptions options;
  options.prune_file = file.string();
  absl::StatusOr<Checkpoint> opened = OpenCheckpoint("synthetic:bert-base", options);
  std::filesystem::remove(file);
  if (!opened.ok()) std::abort();
  ModelDescription& model = opened->description;
  model.layers = 1;
  model.layer_shapes.resize(1);
  model.embeddings.reset();
  model.pooling.reset();
  auto encoder = Encoder::Load(model, *opened->weights, [](int64_t, int64_t) {});
  if (!encoder.ok()) std::abort();
  return EncoderRun(*encoder, kSequences * kLength, Team().size());
}

void AttendBlock(State& state, int64_t pruned, const std::vector<float>& gates) {
  EncoderRun run = RunWithout(pruned);
  std::vector<int32_t> bounds;
  for (int64_t i = 0; i <= kSequences; ++i) bounds.push_back(static_cast<int32_t>(i * kLength));
  const std::vector<HeadGates> of_each(kSequences, {gates.empty() ? nullptr : gates.data(), 0});
  const PackedBatch batch = {.cu_seqlens = bounds, .bias = {}, .head_gates = of_each};
  RunObserver nobody;
  std::fill_n(run.input().data, kSequences * kLength * run.input().cols, 0.5f);
  for (auto _ : state) {  // does not change the input
    if (!run.Attend(0, AttendStage::kProjected, batch, nobody).ok()) std::abort();
  }
}

const bool registered = [] {
  const std::string prefix = "pruning/bert-base.8x128.f32/";
  for (const int64_t left : {12, 8, 4, 1, 0}) {
    benchmark::RegisterBenchmark(absl::StrCat(prefix, "heads:", left).c_str(),
                                 [left](State& state) { AttendBlock(state, kHeads - left, {}); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    std::vector<float> gates(kHeads, 0.0f);
    std::fill_n(gates.begin(), left, 1.0f);
    benchmark::RegisterBenchmark(absl::StrCat(prefix, "gates:", left).c_str(),
                                 [gates](State& state) { AttendBlock(state, 0, gates); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace attendant::bench
