// Tests of stacks of torch's layers with kinds of attention from articles, from a folder to the
// answer, against float64 formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/reference/encoder.h"
#include "tests/support/engine_calls.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace torch_kinds_test {

constexpr int64_t kHeads = 3;
constexpr int64_t kWidth = 21;

// Tensors in addition to those of torch's layers.
struct OwnTensor {
  std::string name;
  std::vector<int64_t> shape;
};

struct Kind {
  std::string name;
  Json keys;
  std::vector<OwnTensor> tensors = {};
  int64_t inputs = 3 * kWidth;  // rows of in_proj_weight
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> Kinds() {
  return {
      {"Additive",
       {{"attention", "additive"}, {"score", "layers.{layer}.self_attn.score"}},
       {{"layers.0.self_attn.score", {kWidth}}, {"layers.1.self_attn.score", {kWidth}}}},
      {"AdditiveInAWindow",
       {{"attention", "additive"}, {"score", "score"}, {"window", 2}},
       {{"score", {kWidth}}}},
      {"Linear", {{"attention", "linear"}, {"score_scale", 0.05}}},
      {"CausalLinear", {{"attention", "causal_linear"}, {"score_scale", 0.05}}},
      {"LinformerWithSharedMixing",
       {{"attention", "linformer"}, {"key_mixing", "E"}, {"value_mixing", "E"}},
       {{"E", {5, 40}}}},
      {"LinformerWithMixingOfEachLayer",
       {{"attention", "linformer"},
        {"key_mixing", "layers.{layer}.E"},
        {"value_mixing", "layers.{layer}.F"}},
       {{"layers.0.E", {5, 40}},
        {"layers.0.F", {5, 40}},
        {"layers.1.E", {5, 40}},
        {"layers.1.F", {5, 40}}}},
      {"Collaborative",
       Json::object({{"mixing", "layers.{layer}.mixing"}}),
       {{"layers.0.mixing", {kHeads, 5}}, {"layers.1.mixing", {kHeads, 5}}},
       5 + 5 + kWidth},
      {"CollaborativeWithContentBias",
       {{"mixing", "mixing"}, {"content_bias", "layers.{layer}.content"}},
       {{"mixing", {kHeads, kWidth}},
        {"layers.0.content", {kHeads, kWidth}},
        {"layers.1.content", {kHeads, kWidth}}}},
      {"WindowWithGlobals", {{"window", 3}, {"first_global", 1}, {"last_global", 2}}},
      {"Blocks", {{"window", 1}, {"window_block", 4}, {"first_global", 1}, {"last_global", 1}}},
      {"ListedBlocks",
       {{"window", 1},
        {"window_block", 4},
        {"block_pairs", {{0, 5}, {3, 0}, {5, 2}, {7, 90}}},
        {"global_blocks", {6}}}},
  };
}

// Returns linear layers that roughly keep the magnitude of their input, and norms around 1.
TestTensor Tensor(const std::string& name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  uint32_t seed = 1;
  for (const char c : name) seed = seed * 31 + static_cast<uint32_t>(c);
  const auto limit = static_cast<float>(1.5 / std::sqrt(static_cast<double>(shape.back())));
  std::vector<float> values = RandomValues(count, seed, shape.size() > 1 ? limit : 0.2f);
  if (name.find("norm") != std::string::npos && name.find("weight") != std::string::npos) {
    for (float& value : values) value += 1;
  }
  return {name, std::move(shape), "F32", attendant::Encode(values, "F32")};
}

std::vector<TestTensor> Tensors(const Kind& kind) {
  std::vector<TestTensor> tensors = {Tensor("norm.weight", {kWidth}),
                                     Tensor("norm.bias", {kWidth})};
  for (const OwnTensor& own : kind.tensors) tensors.push_back(Tensor(own.name, own.shape));
  for (const char* layer : {"layers.0.", "layers.1."}) {
    const OwnTensor parts[] = {{"self_attn.in_proj_weight", {kind.inputs, kWidth}},
                               {"self_attn.in_proj_bias", {kind.inputs}},
                               {"self_attn.out_proj.weight", {kWidth, kWidth}},
                               {"self_attn.out_proj.bias", {kWidth}},
                               {"linear1.weight", {10, kWidth}},
                               {"linear1.bias", {10}},
                               {"linear2.weight", {kWidth, 10}},
                               {"linear2.bias", {kWidth}},
                               {"norm1.weight", {kWidth}},
                               {"norm1.bias", {kWidth}},
                               {"norm2.weight", {kWidth}},
                               {"norm2.bias", {kWidth}}};
    for (const OwnTensor& part : parts) {
      tensors.push_back(Tensor(absl::StrCat(layer, part.name), part.shape));
    }
  }
  return tensors;
}

using Outputs = std::vector<std::vector<double>>;

// The largest difference, and the root of the mean squared one.
struct Errors {
  double largest = 0, deviation = 0;
};

template <typename Computed>
Errors ErrorsOf(const Computed& computed, const Outputs& exact) {
  Errors errors;
  double count = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(computed[i].size(), exact[i].size());
    for (size_t j = 0; j < exact[i].size(); ++j, ++count) {
      const double error = std::abs(computed[i][j] - exact[i][j]);
      if (!(error <= errors.largest)) errors.largest = error;
      errors.deviation += error * error;
    }
  }
  errors.deviation = std::sqrt(errors.deviation / count);
  return errors;
}

class TorchKindsTest : public ::testing::TestWithParam<std::tuple<Kind, bool>> {
 protected:
  void SetUp() override {
    const auto& [kind, norm_first] = GetParam();
    Json description = {
        {"module", "nn.TransformerEncoder"}, {"file", "m.safetensors"}, {"num_heads", kHeads},
        {"norm_first", norm_first},          {"activation", "gelu"},    {"layer_norm_eps", 1e-5}};
    description.update(kind.keys);
    folder_.Write("attendant.json", description.dump());
    folder_.Write("m.safetensors", MakeSafetensors(Tensors(kind)));
    absl::StatusOr<Checkpoint> opened = OpenCheckpoint(folder_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
    sequences_ = RandomSequences({9, 1, 0, 31}, kWidth, 5);
  }

  Outputs Exact(ComputeType type) {
    Outputs exact;
    for (const Sequence& sequence : sequences_)
      exact.emplace_back(sequence.begin(), sequence.end());
    return reference::Encoder(checkpoint_.description, *checkpoint_.weights, type)
        .Encode(std::move(exact));
  }

  std::vector<Sequence> Computed(const ComputeMode& mode) {
    const auto encoder = LoadEncoder(checkpoint_.description, *checkpoint_.weights, mode);
    EncoderRun run(encoder, 64, 2);
    return Encode(run, *encoder, sequences_);
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
  std::vector<Sequence> sequences_;
};

TEST_P(TorchKindsTest, MatchesFloat64) {
  EXPECT_EQ(checkpoint_.description.layers, 2);
  EXPECT_LE(ErrorsOf(Computed({}), Exact(ComputeType::kF32)).largest, 1e-5);
}

// The error is no larger than that of the roundings alone, apart from those that fall the other
// way.
TEST_P(TorchKindsTest, RoundsAsOtherAttentionDoes) {
  const Outputs exact = Exact(ComputeType::kF32);
  for (const ComputeType type : {ComputeType::kBf16, ComputeType::kInt8}) {
    const Errors rounding = ErrorsOf(Exact(type), exact);
    const Errors engine = ErrorsOf(Computed({type, /*emulate=*/true}), exact);
    EXPECT_LE(engine.deviation, 1.5 * rounding.deviation) << Name(type);
    EXPECT_LE(engine.largest, 2 * rounding.largest) << Name(type);
    EXPECT_GT(engine.deviation, 1e-5) << Name(type);
  }
  EXPECT_LE(ErrorsOf(Computed({ComputeType::kBf16x3, /*emulate=*/true}), exact).largest, 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TorchKindsTest,
                         ::testing::Combine(::testing::ValuesIn(Kinds()), ::testing::Bool()),
                         [](const auto& tested) {
                           return std::get<0>(tested.param).name +
                                  (std::get<1>(tested.param) ? "NormFirst" : "NormLast");
                         });

}  // namespace torch_kinds_test
}  // namespace attendant::test_support
