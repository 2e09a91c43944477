// Tests of checkpoints with two towers.
#include "engine/checkpoint/families/tower_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace tower_config_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TinyFamily Vision() {
  for (TinyFamily& family : TinyFamilies()) {
    if (family.name == "clip_vision") return family;
  }
  ADD_FAILURE();
  return {};
}

// Both towers, as the library saves them: sizes of the whole model are beside the sections, and a
// section leaves out what is the library's default.
std::string WholeConfig() {
  return absl::StrCat(
      R"({"model_type": "clip", "projection_dim": 8, "logit_scale_init_value": 2.6,
      "text_config": {"hidden_size": 4}, "vision_config": )",
      absl::StrReplaceAll(Vision().config, {{"\"projection_dim\": 8", "\"dropout\": 0"},
                                            {"\"hidden_act\": \"quick_gelu\",", ""}}),
      "}");
}

std::vector<TestTensor> WholeTensors() {
  std::vector<TestTensor> tensors = TensorsOf(Vision());
  for (TestTensor& tensor : tensors) {
    if (tensor.name.ends_with("class_embedding")) tensor = MakeTensor(tensor.name, {8});
    if (tensor.name.ends_with("position_embedding.weight"))
      tensor = MakeTensor(tensor.name, {5, 8});
  }
  tensors.push_back(MakeTensor("text_model.encoder.layers.0.self_attn.out_proj.weight", {4, 4}));
  tensors.push_back(MakeTensor("text_projection.weight", {8, 4}));
  return tensors;
}

absl::StatusOr<Checkpoint> Open(const std::string& config, const std::vector<TestTensor>& tensors,
                                Tower tower, const TempFolder& folder = TempFolder()) {
  folder.Write("config.json", config);
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  CheckpointOptions options;
  options.tower = tower;
  return OpenCheckpoint(folder.path(), options);
}

std::string Refusal(const std::string& config, const std::vector<TestTensor>& tensors,
                    Tower tower) {
  const absl::Status status = Open(config, tensors, tower).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(TowerTest, VisionTakesPixelsAndProjectsTheClassToken) {
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint =
      Open(WholeConfig(), WholeTensors(), Tower::kVision, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  EXPECT_EQ(model.patch_embedding, (PatchEmbeddingShape{.feature_width = 27,
                                                        .has_class = true,
                                                        .positions = 5,
                                                        .needs_every = true,
                                                        .has_norm = true,
                                                        .image_size = 6,
                                                        .patch_size = 3}));
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kQuickGelu);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_EQ(model.pooling,
            (PoolingDescription{.modes = {PoolingMode::kFirstToken}, .dense_width = 8}));
  EXPECT_EQ(ReadTensor(*checkpoint, "front.projection.weight"),
            TestValues("vision_model.embeddings.patch_embedding.weight", 216));
  EXPECT_EQ(ReadTensor(*checkpoint, "front.class"),
            TestValues("vision_model.embeddings.class_embedding", 8));
  EXPECT_FALSE(checkpoint->weights->Has("front.projection.bias"));
  EXPECT_FALSE(checkpoint->weights->Has("pooling.dense.bias"));
  EXPECT_THAT(checkpoint->unused_tensors,
              UnorderedElementsAre("text_model.encoder.layers.0.self_attn.out_proj.weight",
                                   "text_projection.weight"));
}

TEST(TowerTest, AloneMayBeNamedOrNot) {
  for (const Tower tower : {Tower::kOnly, Tower::kVision}) {
    EXPECT_TRUE(Open(Vision().config, TensorsOf(Vision()), tower).ok());
  }
  // The library saves a tower by itself without the prefix.
  std::vector<TestTensor> tensors = TensorsOf(Vision());
  for (TestTensor& tensor : tensors) {
    tensor = MakeTensor(absl::StrReplaceAll(tensor.name, {{"vision_model.", ""}}), tensor.shape);
  }
  const absl::StatusOr<Checkpoint> checkpoint = Open(Vision().config, tensors, Tower::kOnly);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
}

TEST(TowerTest, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(
      Refusal(WholeConfig(), WholeTensors(), Tower::kOnly),
      HasSubstr("tower: expected tower=vision, as only this tower of clip is computed here, "
                "found none"));
  EXPECT_THAT(Refusal(WholeConfig(), WholeTensors(), Tower::kText), HasSubstr("found text"));
  EXPECT_THAT(Refusal(TinyBertConfig(), TinyBertTensors(), Tower::kVision),
              HasSubstr("tower: expected none, as the checkpoint has no towers, found vision"));
  CheckpointOptions options;
  options.tower = Tower::kText;
  EXPECT_THAT(std::string(OpenCheckpoint("worked-example", options).status().message()),
              HasSubstr("tower: not supported"));
}

TEST(TowerTest, OfOtherSizesIsRefused) {
  const auto with = [](const std::string& from, const std::string& to) {
    EXPECT_THAT(WholeConfig(), HasSubstr(from));
    return Refusal(absl::StrReplaceAll(WholeConfig(), {{from, to}}), WholeTensors(),
                   Tower::kVision);
  };
  EXPECT_THAT(
      with("\"image_size\": 6", "\"image_size\": 9"),
      HasSubstr("expected a table of 10 positions for the patches of an image and the class "
                "token, found 5"));
  EXPECT_THAT(with("\"patch_size\": 3", "\"patch_size\": 7"),
              HasSubstr("patch_size: expected at most image_size 6, found 7"));
  EXPECT_THAT(with("\"patch_size\": 3", "\"patch_size\": 3, \"num_channels\": 1"),
              HasSubstr("num_channels: expected an integer from 3 to 3, found 1"));
  EXPECT_THAT(with("\"vision_config\": {", "\"vision_config\": 7, \"other\": {"),
              HasSubstr("vision_config: expected an object, found 7"));
}

}  // namespace tower_config_test
}  // namespace attendant
