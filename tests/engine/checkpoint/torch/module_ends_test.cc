#include "engine/checkpoint/torch/module_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace module_ends_test {

using ::testing::HasSubstr;

Json Description() {
  return {{"module", "nn.TransformerEncoderLayer"},
          {"file", "m.safetensors"},
          {"num_heads", 2},
          {"norm_first", false},
          {"activation", "relu"},
          {"layer_norm_eps", 1e-5}};
}

Json WithEnds() {
  Json json = Description();
  json["input_projection"] = "into";
  json["sinusoids"] = "interleaved";
  json["max_positions"] = 6;
  json["output_projection"] = "out_of";
  json["pooling"] = "mean";
  return json;
}

std::vector<TestTensor> Tensors() {
  return {MakeTensor("self_attn.in_proj_weight", {12, 4}),
          MakeTensor("self_attn.in_proj_bias", {12}),
          MakeTensor("self_attn.out_proj.weight", {4, 4}),
          MakeTensor("self_attn.out_proj.bias", {4}),
          MakeTensor("linear1.weight", {8, 4}),
          MakeTensor("linear1.bias", {8}),
          MakeTensor("linear2.weight", {4, 8}),
          MakeTensor("linear2.bias", {4}),
          MakeTensor("norm1.weight", {4}),
          MakeTensor("norm1.bias", {4}),
          MakeTensor("norm2.weight", {4}),
          MakeTensor("norm2.bias", {4}),
          MakeTensor("into.weight", {4, 7}),
          MakeTensor("into.bias", {4}),
          MakeTensor("out_of.weight", {3, 4})};
}

absl::StatusOr<Checkpoint> Open(const Json& json, const TempFolder& folder = TempFolder()) {
  folder.Write("attendant.json", json.dump());
  folder.Write("m.safetensors", MakeSafetensors(Tensors()));
  return OpenCheckpoint(folder.path(), {});
}

std::string RefusalWith(const std::string& key, const Json& value) {
  Json json = WithEnds();
  json[key] = value;
  const absl::Status status = Open(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ModuleEndsTest, PutLayersBeforeAndBehindTheModule) {
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(WithEnds(), folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  EXPECT_EQ(model.patch_embedding, (PatchEmbeddingShape{.feature_width = 7, .positions = 6}));
  PoolingDescription head;
  head.modes = {PoolingMode::kMean};
  head.dense_width = 3;
  EXPECT_EQ(model.classifier, head);
  EXPECT_EQ(ReadTensor(*checkpoint, "front.projection.weight"), TestValues("into.weight", 28));
  EXPECT_EQ(ReadTensor(*checkpoint, "classifier.dense.weight"), TestValues("out_of.weight", 12));
  EXPECT_FALSE(checkpoint->weights->Has("classifier.dense.bias"));
  std::vector<float> sinusoids(24);
  FillSinusoids({.kind = Sinusoids::kInterleaved, .positions = 6, .width = 4},
                absl::MakeSpan(sinusoids));
  EXPECT_EQ(ReadTensor(*checkpoint, "front.positions"), sinusoids);
  std::vector<float> other(5);
  EXPECT_EQ(checkpoint->weights->Read("front.positions", absl::MakeSpan(other)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModuleEndsTest, RefuseWhatDoesNotFit) {
  EXPECT_THAT(RefusalWith("input_projection", "absent"),
              HasSubstr("tensor 'absent.weight': missing; expected a linear layer of 1..65536 "
                        "inputs and outputs for input_projection"));
  EXPECT_THAT(
      RefusalWith("output_projection", "norm1"),
      HasSubstr("expected a linear layer of 1..65536 inputs and outputs for output_projection"));
  EXPECT_THAT(RefusalWith("input_projection", nullptr),
              HasSubstr("tensor 'into.weight' F32 [4, 7]: unexpected in this"));
  EXPECT_THAT(RefusalWith("sinusoids", "learned"), HasSubstr("sinusoids: expected"));
  EXPECT_THAT(RefusalWith("max_positions", 0), HasSubstr("max_positions: expected an integer"));
  EXPECT_THAT(RefusalWith("max_positions", nullptr), HasSubstr("max_positions: missing"));
  EXPECT_THAT(RefusalWith("sinusoids", nullptr), HasSubstr("max_positions"));
  EXPECT_THAT(RefusalWith("pooling", nullptr), HasSubstr("pooling: missing"));
  EXPECT_THAT(RefusalWith("pooling", "median"), HasSubstr("pooling: expected"));
}

TEST(ModuleEndsTest, HaveLiteralNames) {
  const TempFolder folder;
  Json json = WithEnds();
  json["input_projection"] = "{i}.LayerNorm";
  json["output_projection"] = "/{layer}";
  std::vector<TestTensor> tensors = Tensors();
  tensors[12] = MakeTensor("{i}.LayerNorm.weight", {4, 7});
  tensors[13] = MakeTensor("{i}.LayerNorm.beta", {4});
  tensors[14] = MakeTensor("/{layer}.weight", {3, 4});
  folder.Write("attendant.json", json.dump());
  folder.Write("m.safetensors", MakeSafetensors(tensors));
  EXPECT_THAT(std::string(OpenCheckpoint(folder.path(), {}).status().message()),
              HasSubstr("tensor '{i}.LayerNorm.beta' F32 [4]: unexpected in this"));
  tensors[13] = MakeTensor("{i}.LayerNorm.bias", {4});
  folder.Write("m.safetensors", MakeSafetensors(tensors));
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ReadTensor(*checkpoint, "front.projection.bias"), TestValues("{i}.LayerNorm.bias", 4));
  EXPECT_EQ(ReadTensor(*checkpoint, "classifier.dense.weight"), TestValues("/{layer}.weight", 12));
}

TEST(ModuleEndsTest, RefuseHalvesOfAnOddWidth) {
  TempFolder folder;
  Json json = Description();
  json["num_heads"] = 1;
  json["sinusoids"] = "halves";
  json["max_positions"] = 6;
  folder.Write("attendant.json", json.dump());
  std::vector<TestTensor> tensors = Tensors();
  tensors[2] = MakeTensor("self_attn.out_proj.weight", {3, 3});
  folder.Write("m.safetensors", MakeSafetensors(tensors));
  EXPECT_THAT(std::string(OpenCheckpoint(folder.path(), {}).status().message()),
              HasSubstr("sinusoids: expected an even width of at least 4 for halves; got 3"));
}

TEST(ModuleEndsTest, AreNotOfAttentionByItself) {
  Json json = {{"module", "nn.MultiheadAttention"},
               {"file", "m.safetensors"},
               {"num_heads", 2},
               {"input_projection", "into"}};
  EXPECT_THAT(std::string(Open(json).status().message()), HasSubstr("input_projection"));
}

}  // namespace module_ends_test
}  // namespace attendant
