#include "engine/checkpoint/torch/torch_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace torch_modules_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Tensors = std::vector<TestTensor>;

Tensors AttentionTensors(const std::string& prefix) {
  return {MakeTensor(prefix + "in_proj_weight", {12, 4}), MakeTensor(prefix + "in_proj_bias", {12}),
          MakeTensor(prefix + "out_proj.weight", {4, 4}),
          MakeTensor(prefix + "out_proj.bias", {4})};
}

Tensors LayerTensors(const std::string& prefix) {
  Tensors tensors = AttentionTensors(prefix + "self_attn.");
  tensors.push_back(MakeTensor(prefix + "linear1.weight", {8, 4}));
  tensors.push_back(MakeTensor(prefix + "linear1.bias", {8}));
  tensors.push_back(MakeTensor(prefix + "linear2.weight", {4, 8}));
  tensors.push_back(MakeTensor(prefix + "linear2.bias", {4}));
  for (const char* norm : {"norm1", "norm2"}) {
    tensors.push_back(MakeTensor(prefix + norm + ".weight", {4}));
    tensors.push_back(MakeTensor(prefix + norm + ".bias", {4}));
  }
  return tensors;
}

Json Description(const std::string& module) {
  Json json = {{"module", module}, {"file", "m.safetensors"}, {"num_heads", 2}};
  if (module != "nn.MultiheadAttention") {
    json["norm_first"] = true;
    json["activation"] = "relu";
    json["layer_norm_eps"] = 1e-5;
  }
  return json;
}

absl::StatusOr<Checkpoint> Open(const Json& description, const Tensors& tensors) {
  TempFolder folder;
  folder.Write("attendant.json", description.dump());
  folder.Write("m.safetensors", MakeSafetensors(tensors));
  return OpenCheckpoint(folder.path(), {});
}

std::string Refusal(const Json& description, const Tensors& tensors) {
  const absl::Status status = Open(description, tensors).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// Returns the rows of one third of a tensor with TestValues.
std::vector<float> Third(const std::string& name, int64_t count, int64_t index) {
  const std::vector<float> values = TestValues(name, count);
  return {values.begin() + index * count / 3, values.begin() + (index + 1) * count / 3};
}

class TorchModules : public ::testing::Test {
 protected:
  void Load(const Json& description, const Tensors& tensors) {
    folder_.Write("attendant.json", description.dump());
    folder_.Write("m.safetensors", MakeSafetensors(tensors));
    absl::StatusOr<Checkpoint> opened = OpenCheckpoint(folder_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }

  std::vector<float> Weight(const std::string& name) { return ReadTensor(checkpoint_, name); }

  void ExpectLayer(int64_t index, const std::string& prefix) {
    const std::string layer = absl::StrCat("layer.", index, ".");
    const std::string attention = prefix + "self_attn.";
    EXPECT_EQ(Weight(layer + "key.weight"), Third(attention + "in_proj_weight", 48, 1));
    EXPECT_EQ(Weight(layer + "value.bias"), Third(attention + "in_proj_bias", 12, 2));
    EXPECT_EQ(Weight(layer + "output.weight"), TestValues(attention + "out_proj.weight", 16));
    EXPECT_EQ(Weight(layer + "attention_norm.weight"), TestValues(prefix + "norm1.weight", 4));
    EXPECT_EQ(Weight(layer + "feed_forward_in.weight"), TestValues(prefix + "linear1.weight", 32));
    EXPECT_EQ(Weight(layer + "feed_forward_out.bias"), TestValues(prefix + "linear2.bias", 4));
    EXPECT_EQ(Weight(layer + "feed_forward_norm.bias"), TestValues(prefix + "norm2.bias", 4));
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

TEST_F(TorchModules, ReadsMultiheadAttention) {
  Load(Description("nn.MultiheadAttention"), AttentionTensors(""));
  const ModelDescription& description = checkpoint_.description;
  EXPECT_EQ(description.family, "nn.MultiheadAttention");
  EXPECT_EQ(description.layers, 1);
  EXPECT_EQ(description.layer.hidden_size, 4);
  EXPECT_EQ(description.layer.attention.heads, 2);
  EXPECT_EQ(description.layer.attention.key_width, 2);
  EXPECT_FLOAT_EQ(description.layer.attention.score_scale, 0.70710678f);
  EXPECT_EQ(description.layer.norms.placement, NormPlacement::kNone);
  EXPECT_EQ(description.layer.feed_forward.width, 0);
  EXPECT_TRUE(description.layer.attention.has_output_projection);
  EXPECT_FALSE(description.embeddings.has_value());
  EXPECT_EQ(Weight("layer.0.query.weight"), Third("in_proj_weight", 48, 0));
  EXPECT_EQ(Weight("layer.0.key.weight"), Third("in_proj_weight", 48, 1));
  EXPECT_EQ(Weight("layer.0.value.weight"), Third("in_proj_weight", 48, 2));
  EXPECT_EQ(Weight("layer.0.query.bias"), Third("in_proj_bias", 12, 0));
  EXPECT_EQ(Weight("layer.0.key.bias"), Third("in_proj_bias", 12, 1));
  EXPECT_EQ(Weight("layer.0.value.bias"), Third("in_proj_bias", 12, 2));
  EXPECT_EQ(Weight("layer.0.output.weight"), TestValues("out_proj.weight", 16));
  EXPECT_EQ(Weight("layer.0.output.bias"), TestValues("out_proj.bias", 4));
}

TEST_F(TorchModules, ReadsAttentionWithoutBias) {
  Tensors tensors = AttentionTensors("");
  std::erase_if(tensors, [](const TestTensor& t) { return absl::EndsWith(t.name, "bias"); });
  Load(Description("nn.MultiheadAttention"), tensors);
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.query.bias"));
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.output.bias"));
  EXPECT_TRUE(checkpoint_.weights->Has("layer.0.output.weight"));
}

TEST_F(TorchModules, ReadsAttentionWithItsOwnWidths) {
  Tensors tensors = AttentionTensors("");
  tensors[0] = MakeTensor("q_proj_weight", {4, 4});
  tensors.push_back(MakeTensor("k_proj_weight", {4, 5}));
  tensors.push_back(MakeTensor("v_proj_weight", {4, 6}));
  Load(Description("nn.MultiheadAttention"), tensors);
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.hidden_size, 4);
  EXPECT_EQ(layer.key_inputs(), 5);
  EXPECT_EQ(layer.value_inputs(), 6);
  EXPECT_TRUE(layer.needs_cross_kv());
  EXPECT_EQ(Weight("layer.0.query.weight"), TestValues("q_proj_weight", 16));
  EXPECT_EQ(Weight("layer.0.key.weight"), TestValues("k_proj_weight", 20));
  EXPECT_EQ(Weight("layer.0.value.weight"), TestValues("v_proj_weight", 24));
  EXPECT_EQ(Weight("layer.0.value.bias"), Third("in_proj_bias", 12, 2));
}

TEST_F(TorchModules, ReadsAnEncoderLayer) {
  Load(Description("nn.TransformerEncoderLayer"), LayerTensors(""));
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.norms.placement, NormPlacement::kPre);
  EXPECT_EQ(layer.feed_forward.activation, Activation::kRelu);
  EXPECT_EQ(layer.norms.epsilon, 1e-5f);
  EXPECT_EQ(layer.feed_forward.width, 8);
  EXPECT_FALSE(checkpoint_.description.has_exit_norm);
  ExpectLayer(0, "");
}

TEST_F(TorchModules, ReadsAnEncoderWithItsNorm) {
  Tensors tensors = LayerTensors("layers.0.");
  for (const TestTensor& tensor : LayerTensors("layers.1.")) tensors.push_back(tensor);
  Json description = Description("nn.TransformerEncoder");
  description["norm_first"] = false;
  description["activation"] = "gelu";
  Load(description, tensors);
  EXPECT_EQ(checkpoint_.description.layers, 2);
  EXPECT_EQ(checkpoint_.description.layer.norms.placement, NormPlacement::kPost);
  EXPECT_EQ(checkpoint_.description.layer.feed_forward.activation, Activation::kGelu);
  EXPECT_FALSE(checkpoint_.description.has_exit_norm);
  ExpectLayer(0, "layers.0.");
  ExpectLayer(1, "layers.1.");

  tensors.push_back(MakeTensor("norm.weight", {4}));
  tensors.push_back(MakeTensor("norm.bias", {4}));
  Load(description, tensors);
  EXPECT_TRUE(checkpoint_.description.has_exit_norm);
  EXPECT_EQ(Weight("exit_norm.weight"), TestValues("norm.weight", 4));
  EXPECT_EQ(Weight("exit_norm.bias"), TestValues("norm.bias", 4));
}

TEST(TorchRefusals, AsksForWhatNoFileCarries) {
  for (const char* key :
       {"module", "file", "num_heads", "norm_first", "activation", "layer_norm_eps"}) {
    Json description = Description("nn.TransformerEncoderLayer");
    description.erase(key);
    EXPECT_THAT(
        Refusal(description, LayerTensors("")),
        AllOf(HasSubstr("attendant.json: "), HasSubstr(absl::StrCat(key, ": missing; expected "))))
        << key;
  }
  EXPECT_THAT(Refusal(Json::object(), {}), HasSubstr("3 problems: "));
}

TEST(TorchRefusals, RefusesFieldsItCannotHonour) {
  Json description = Description("nn.MultiheadAttention");
  description["norm_first"] = true;
  EXPECT_THAT(Refusal(description, AttentionTensors("")),
              HasSubstr("expected only the keys file, module, num_heads; got 'norm_first'"));
  description = Description("nn.TransformerEncoderLayer");
  description["add_zero_attn"] = true;
  EXPECT_THAT(Refusal(description, LayerTensors("")), HasSubstr("got 'add_zero_attn'"));
  description = Description("nn.TransformerEncoderLayer");
  description["activation"] = "tanh";
  description["module"] = "nn.Transformer";
  EXPECT_THAT(Refusal(description, LayerTensors("")),
              HasSubstr("module: expected one of nn.MultiheadAttention, "
                        "nn.TransformerEncoderLayer, nn.TransformerEncoder, attention; got "
                        "'nn.Transformer'"));
  description["module"] = "nn.TransformerEncoder";
  description["norm_first"] = "true";
  description["layer_norm_eps"] = 0.5;
  EXPECT_THAT(Refusal(description, {}),
              AllOf(HasSubstr("activation: expected one of relu, gelu; got 'tanh'"),
                    HasSubstr("norm_first: expected true or false; got 'true'"),
                    HasSubstr("layer_norm_eps: expected a number in 0..0.01; got 0.5")));
}

TEST(TorchRefusals, RefusesFilesElsewhereAndPickles) {
  Json description = Description("nn.MultiheadAttention");
  description["file"] = "../m.safetensors";
  EXPECT_THAT(
      Refusal(description, AttentionTensors("")),
      HasSubstr(
          "file: expected the plain name of a file in this directory; got '../m.safetensors'"));
  description["num_heads"] = 0;
  EXPECT_THAT(
      Refusal(description, AttentionTensors("")),
      AllOf(HasSubstr("attendant.json: 2 problems: "),
            HasSubstr("file: expected the plain name of a file in this directory; got '../"),
            HasSubstr("num_heads: expected an integer in 1..65536; got 0")));
  description = Description("nn.MultiheadAttention");
  description["file"] = "";
  EXPECT_THAT(Refusal(description, AttentionTensors("")),
              HasSubstr("file: expected the plain name of a file in this directory; got ''"));
  for (const char* name : {"m.pt", "m.pth", "m.bin"}) {
    description["file"] = name;
    EXPECT_THAT(Refusal(description, {}),
                AllOf(HasSubstr(", a pickle, "), HasSubstr("python3 -c")));
  }
}

TEST(TorchRefusals, RefusesHeadsThatDoNotDivideTheWidth) {
  Json description = Description("nn.MultiheadAttention");
  description["num_heads"] = 3;
  EXPECT_THAT(Refusal(description, AttentionTensors("")),
              HasSubstr("num_heads: expected a divisor of the width 4; got 3"));
}

TEST(TorchRefusals, RefusesKeysAndValuesOfAnotherWidthInALayer) {
  Tensors tensors = LayerTensors("");
  tensors[0] = MakeTensor("self_attn.q_proj_weight", {4, 4});
  tensors.push_back(MakeTensor("self_attn.k_proj_weight", {4, 5}));
  EXPECT_THAT(Refusal(Description("nn.TransformerEncoderLayer"), tensors),
              AllOf(HasSubstr("m.safetensors: tensor 'self_attn.k_proj_weight' F32 [4, 5]: "
                              "expected in_proj_weight (a layer attends to its own sequence)"),
                    HasSubstr("'self_attn.q_proj_weight' F32 [4, 4]")));
}

TEST(TorchRefusals, RefusesProjectionsThatDoNotFit) {
  Tensors tensors = AttentionTensors("");
  tensors[0] = MakeTensor("q_proj_weight", {4, 4});
  tensors.push_back(MakeTensor("k_proj_weight", {3, 5}));
  EXPECT_THAT(Refusal(Description("nn.MultiheadAttention"), tensors),
              HasSubstr("tensor 'v_proj_weight': missing; expected a matrix of 1..65536 columns"));
  tensors.push_back(MakeTensor("v_proj_weight", {4, 6}));
  EXPECT_THAT(Refusal(Description("nn.MultiheadAttention"), tensors),
              AllOf(HasSubstr("'k_proj_weight' F32 [3, 5]"), HasSubstr("[4, 5]")));
}

TEST(TorchRefusals, RefusesKeysOfItsOwn) {
  Tensors tensors = LayerTensors("layers.0.");
  tensors.push_back(MakeTensor("layers.0.self_attn.bias_k", {1, 1, 4}));
  tensors.push_back(MakeTensor("layers.0.self_attn.bias_v", {1, 1, 4}));
  EXPECT_THAT(
      Refusal(Description("nn.TransformerEncoder"), tensors),
      AllOf(HasSubstr(
                "'layers.0.self_attn.bias_k' F32 [1, 1, 4]: expected a module without add_bias_kv"),
            HasSubstr("bias_v")));
}

TEST(TorchRefusals, TellsAllProblemsOfTheTensorsAtOnce) {
  Tensors tensors = LayerTensors("layers.0.");
  for (const TestTensor& tensor : LayerTensors("layers.1.")) tensors.push_back(tensor);
  std::erase_if(tensors, [](const TestTensor& t) {
    return t.name == "layers.1.self_attn.out_proj.bias" || t.name == "layers.0.linear2.weight";
  });
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "layers.1.self_attn.in_proj_weight") {
      tensor = MakeTensor(tensor.name, {11, 4});
    }
  }
  tensors.push_back(MakeTensor("layers.3.norm1.bias", {4}));
  EXPECT_THAT(
      Refusal(Description("nn.TransformerEncoder"), tensors),
      AllOf(HasSubstr("4 problems: "),
            HasSubstr("tensor 'layers.1.self_attn.out_proj.bias': missing; expected [4]"),
            HasSubstr("tensor 'layers.0.linear2.weight': missing; expected [4, 8]"),
            HasSubstr("'layers.1.self_attn.in_proj_weight' F32 [11, 4]: expected F32, F16, BF16 or "
                      "F64 [12, 4]"),
            HasSubstr("'layers.3.norm1.bias' F32 [4]: unexpected in this")));
}

TEST(TorchRefusals, RefusesFilesOfAnotherModule) {
  EXPECT_THAT(Refusal(Description("nn.MultiheadAttention"), LayerTensors("")),
              HasSubstr("tensor 'out_proj.weight': missing; expected a matrix of 1..65536 rows"));
  EXPECT_THAT(
      Refusal(Description("nn.TransformerEncoder"), LayerTensors("")),
      HasSubstr("expected 1..1024 layers with layers.<i>.self_attn.out_proj.weight; got 0"));
}

}  // namespace torch_modules_test
}  // namespace attendant
