// Tests of torch's layers with kinds of attention that torch does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/torch/attention_kind_keys.h"
#include "engine/checkpoint/torch/torch_modules.h"
#include "tests/engine/checkpoint/described_folder.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace torch_kinds_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Tensors = std::vector<TestTensor>;

Json Description(const std::string& module = "nn.TransformerEncoder") {
  return {{"module", module},    {"file", "m.safetensors"}, {"num_heads", 2},
          {"norm_first", false}, {"activation", "relu"},    {"layer_norm_eps", 1e-5}};
}

// Layers with E 4, F 8 and `inputs` rows of in_proj_weight.
void AddLayer(const std::string& prefix, int64_t inputs, Tensors& tensors) {
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors.push_back(MakeTensor(prefix + name, std::move(shape)));
  };
  add("self_attn.in_proj_weight", {inputs, 4});
  add("self_attn.in_proj_bias", {inputs});
  add("self_attn.out_proj.weight", {4, 4});
  add("self_attn.out_proj.bias", {4});
  add("linear1.weight", {8, 4});
  add("linear1.bias", {8});
  add("linear2.weight", {4, 8});
  add("linear2.bias", {4});
  for (const char* norm : {"norm1", "norm2"}) {
    add(absl::StrCat(norm, ".weight"), {4});
    add(absl::StrCat(norm, ".bias"), {4});
  }
}

Tensors TwoLayers(int64_t inputs = 12) {
  Tensors tensors;
  AddLayer("layers.0.", inputs, tensors);
  AddLayer("layers.1.", inputs, tensors);
  return tensors;
}

Tensors And(Tensors tensors, const Tensors& others) {
  tensors.insert(tensors.end(), others.begin(), others.end());
  return tensors;
}

class TorchKinds : public DescribedFolderTest {
 protected:
  const LayerShape& layer() const { return checkpoint_.description.layer; }
  std::vector<float> Weight(const std::string& name) { return ReadTensor(checkpoint_, name); }
};

TEST_F(TorchKinds, ScoresOfALayerHaveATensorOfTheLayer) {
  Json description = Description();
  description["attention"] = "additive";
  description["score"] = "layers.{layer}.self_attn.score";
  Load(description, And(TwoLayers(), {MakeTensor("layers.0.self_attn.score", {4}),
                                      MakeTensor("layers.1.self_attn.score", {4})}));
  EXPECT_EQ(layer().attention.kind, AttentionKind::kAdditive);
  EXPECT_EQ(layer().attention.score_scale, 1);
  EXPECT_EQ(layer().norms.placement, NormPlacement::kPost);
  EXPECT_EQ(layer().feed_forward.width, 8);
  EXPECT_EQ(Weight("layer.0.score"), TestValues("layers.0.self_attn.score", 4));
  EXPECT_EQ(Weight("layer.1.score"), TestValues("layers.1.self_attn.score", 4));
}

TEST_F(TorchKinds, ATensorWithoutLayerInItsNameIsShared) {
  Json description = Description();
  description["attention"] = "linformer";
  description["key_mixing"] = "layers.{layer}.E";
  description["value_mixing"] = "F";
  Load(description, And(TwoLayers(), {MakeTensor("layers.0.E", {3, 5}),
                                      MakeTensor("layers.1.E", {3, 5}), MakeTensor("F", {3, 5})}));
  EXPECT_EQ(layer().attention.linformer.keys, 3);
  EXPECT_EQ(layer().attention.linformer.positions, 5);
  EXPECT_FLOAT_EQ(layer().attention.score_scale, 0.70710678f);
  EXPECT_EQ(Weight("layer.1.key_mixing"), TestValues("layers.1.E", 15));
  EXPECT_EQ(Weight("layer.0.value_mixing"), TestValues("F", 15));
  EXPECT_EQ(Weight("layer.1.value_mixing"), TestValues("F", 15));
}

// Only {layer} stands for something, and no tensor has a second name.
TEST_F(TorchKinds, TheRestOfANameIsLiteral) {
  Json description = Description();
  description["attention"] = "linformer";
  description["key_mixing"] = "/{i}.{j}.LayerNorm";
  description["value_mixing"] = "{i}.{layer}.LayerNorm";
  const TestTensor keys = MakeTensor("/{i}.{j}.LayerNorm", {3, 5});
  Load(description, And(TwoLayers(), {keys, MakeTensor("{i}.0.LayerNorm", {3, 5}),
                                      MakeTensor("{i}.1.LayerNorm", {3, 5})}));
  EXPECT_EQ(Weight("layer.1.key_mixing"), TestValues("/{i}.{j}.LayerNorm", 15));
  EXPECT_EQ(Weight("layer.1.value_mixing"), TestValues("{i}.1.LayerNorm", 15));
  EXPECT_THAT(
      Refusal(description, And(TwoLayers(), {keys, MakeTensor("{i}.0.LayerNorm.beta", {3, 5}),
                                             MakeTensor("{i}.1.LayerNorm", {3, 5})})),
      HasSubstr("tensor '{i}.0.LayerNorm': missing; expected [3, 5]"));
}

TEST_F(TorchKinds, FastWeightsAndScalesNeedNoTensor) {
  Json description = Description("nn.TransformerEncoderLayer");
  description["attention"] = "causal_linear";
  description["score_scale"] = 0.5;
  Tensors tensors;
  AddLayer("", 12, tensors);
  Load(description, tensors);
  EXPECT_EQ(layer().attention.kind, AttentionKind::kCausalLinear);
  EXPECT_EQ(layer().attention.score_scale, 0.5f);
  EXPECT_EQ(checkpoint_.description.layers, 1);
}

TEST_F(TorchKinds, WindowsAreOfAllLayers) {
  Json description = Description();
  description["window"] = 2;
  description["window_block"] = 16;
  description["first_global"] = 1;
  description["last_global"] = 3;
  description["block_pairs"] = {{5, 9}};
  Load(description, TwoLayers());
  EXPECT_EQ(checkpoint_.description.layer_at(1).attention.window, 2);
  EXPECT_EQ(layer().attention.pattern,
            (AttentionPattern{
                .block = 16, .first_global = 1, .last_global = 3, .listed = BlockLists({{5, 9}})}));
}

// Three columns of queries and three of keys that both heads share, then the values.
TEST_F(TorchKinds, CollaborativeHeadsShareRowsOfTheInputProjection) {
  Json description = Description();
  description["mixing"] = "layers.{layer}.self_attn.mixing";
  description["content_bias"] = "layers.{layer}.self_attn.content";
  Tensors tensors = TwoLayers(10);
  for (const char* prefix : {"layers.0.self_attn.", "layers.1.self_attn."}) {
    tensors.push_back(MakeTensor(absl::StrCat(prefix, "mixing"), {2, 3}));
    tensors.push_back(MakeTensor(absl::StrCat(prefix, "content"), {2, 4}));
  }
  Load(description, tensors);
  EXPECT_EQ(layer().attention.key_width, 4);
  EXPECT_EQ(layer().attention.value_width, 2);
  EXPECT_FLOAT_EQ(layer().attention.score_scale, std::sqrt(2.0f / 3));
  const std::vector<float> inputs = TestValues("layers.1.self_attn.in_proj_weight", 40);
  const std::vector<float> biases = TestValues("layers.1.self_attn.in_proj_bias", 10);
  const std::vector<float> mixing = TestValues("layers.1.self_attn.mixing", 6);
  const std::vector<float> content = TestValues("layers.1.self_attn.content", 8);
  const std::vector<float> queries = Weight("layer.1.query.weight");
  const std::vector<float> keys = Weight("layer.1.key.weight");
  const std::vector<float> query_bias = Weight("layer.1.query.bias");
  const std::vector<float> key_bias = Weight("layer.1.key.bias");
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(queries[h * 16 + i], mixing[h * 3 + i / 4] * inputs[i]);
      EXPECT_EQ(keys[h * 16 + i], inputs[12 + i]);
    }
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(queries[h * 16 + 12 + j], 0);
      EXPECT_EQ(keys[h * 16 + 12 + j], content[h * 4 + j]);
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(query_bias[h * 4 + i], mixing[h * 3 + i] * biases[i]);
      EXPECT_EQ(key_bias[h * 4 + i], biases[3 + i]);
    }
    EXPECT_EQ(query_bias[h * 4 + 3], 1);
    EXPECT_EQ(key_bias[h * 4 + 3], 0);
  }
  const std::vector<float> values = Weight("layer.1.value.weight");
  EXPECT_EQ(values, std::vector<float>(inputs.begin() + 24, inputs.end()));
  EXPECT_EQ(Weight("layer.1.value.bias"), std::vector<float>(biases.begin() + 6, biases.end()));
}

TEST_F(TorchKinds, RefusesKindsThatSayTooLittleOrTooMuch) {
  Json description = Description();
  description["attention"] = "quadratic";
  EXPECT_THAT(Refusal(description, TwoLayers()),
              HasSubstr("attention: expected one of softmax, additive, linear, causal_linear, "
                        "linformer"));
  description["attention"] = "additive";
  EXPECT_THAT(Refusal(description, TwoLayers()), HasSubstr("score: missing; expected a string"));
  description["attention"] = "linear";
  description["window"] = 3;
  EXPECT_THAT(Refusal(description, TwoLayers()), HasSubstr("got 'window'"));
  description = Description();
  description["content_bias"] = "c";
  EXPECT_THAT(Refusal(description, TwoLayers()), HasSubstr("got 'content_bias'"));
}

TEST_F(TorchKinds, RefusesTheKeysOfAKindInTorchsOwnAttention) {
  const Json description = {{"module", "nn.MultiheadAttention"},
                            {"file", "m.safetensors"},
                            {"num_heads", 2},
                            {"attention", "linear"}};
  EXPECT_THAT(Refusal(description, {}), HasSubstr("got 'attention'"));
}

TEST_F(TorchKinds, RefusesTensorsThatDoNotFit) {
  Json description = Description();
  description["attention"] = "additive";
  description["score"] = "w{layer}";
  EXPECT_THAT(Refusal(description, And(TwoLayers(), {MakeTensor("w0", {4})})),
              HasSubstr("tensor 'w1': missing; expected [4]"));
  EXPECT_THAT(
      Refusal(description, And(TwoLayers(), {MakeTensor("w0", {4}), MakeTensor("w1", {5})})),
      AllOf(HasSubstr("tensor 'w1' F32 [5]"), HasSubstr("[4]")));
  EXPECT_THAT(Refusal(Description(), And(TwoLayers(), {MakeTensor("w0", {4})})),
              HasSubstr("tensor 'w0' F32 [4]: unexpected in this module"));
  description = Description();
  description["attention"] = "linformer";
  description["key_mixing"] = description["value_mixing"] = "E";
  EXPECT_THAT(
      Refusal(description, TwoLayers()),
      HasSubstr("tensor 'E': missing; expected a matrix of up to 1048576 rows and columns"));
}

TEST_F(TorchKinds, RefusesSharedColumnsThatDoNotFit) {
  Json description = Description();
  description["mixing"] = "m";
  EXPECT_THAT(Refusal(description, And(TwoLayers(11), {MakeTensor("m", {2, 3})})),
              HasSubstr("[11, 4]: expected 4 rows for values and an even number of rows for the "
                        "queries and keys that collaborative heads share"));
  EXPECT_THAT(Refusal(description, And(TwoLayers(4), {MakeTensor("m", {2, 3})})),
              HasSubstr("[4, 4]: expected 4 rows for values"));
  EXPECT_THAT(Refusal(description, And(TwoLayers(10), {MakeTensor("m", {2, 4})})),
              AllOf(HasSubstr("tensor 'm' F32 [2, 4]"), HasSubstr("[2, 3]")));
}

}  // namespace torch_kinds_test
}  // namespace attendant
