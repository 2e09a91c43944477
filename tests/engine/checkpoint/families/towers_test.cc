// Tests of checkpoints with two towers.
#include "engine/checkpoint/families/config_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/families/model_config.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace towers_test {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

TinyFamily Tiny(const std::string& name) {
  for (TinyFamily& family : TinyFamilies()) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << "no family " << name;
  return {};
}

TinyFamily Vision() { return Tiny("clip_vision"); }

// Both towers, as the library saves them: sizes of the whole model are beside the sections, and a
// section leaves out what is the library's default.
std::string WholeConfig() {
  return absl::StrCat(
      R"({"model_type": "clip", "projection_dim": 8, "logit_scale_init_value": 2.6,
      "text_config": )",
      absl::StrReplaceAll(Tiny("clip_text").config, {{"\"projection_dim\": 8", "\"dropout\": 0"}}),
      R"(, "vision_config": )",
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
  for (TestTensor& tensor : TensorsOf(Tiny("clip_text"))) tensors.push_back(std::move(tensor));
  tensors.push_back(MakeTensor("logit_scale", {}));
  return tensors;
}

// Names of the tensors that belong to the tower.
std::vector<std::string> NamesOf(const TinyFamily& family) {
  std::vector<std::string> names;
  for (const TestTensor& tensor : TensorsOf(family)) names.push_back(tensor.name);
  return names;
}

std::vector<TestTensor> Without(const std::string& prefix, std::vector<TestTensor> tensors) {
  for (TestTensor& tensor : tensors) {
    tensor = MakeTensor(absl::StrReplaceAll(tensor.name, {{prefix, ""}}), tensor.shape);
  }
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
  EXPECT_THAT(checkpoint->unused_tensors, UnorderedElementsAreArray(NamesOf(Tiny("clip_text"))));
  EXPECT_EQ(model.similarity,
            (SimilarityShape{.scale = std::exp(TestValues("logit_scale", 1)[0])}));
}

TEST(TowerTest, TextIsCausalAndProjectsItsEnd) {
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(WholeConfig(), WholeTensors(), Tower::kText, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  EXPECT_TRUE(model.layer.attention.causal);
  EXPECT_EQ(model.embeddings->longest_sequence(), 16);
  EXPECT_FALSE(model.embeddings->has_norm);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_EQ(model.pooling, (PoolingDescription{
                               .modes = {PoolingMode::kLastToken}, .dense_width = 8, .end_id = 9}));
  EXPECT_FALSE(checkpoint->tokenization.texts_take_mean);
  EXPECT_EQ(checkpoint->tokenization.padding, TextPadding());
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.dense.weight"),
            TestValues("text_projection.weight", 64));
  EXPECT_THAT(checkpoint->unused_tensors, UnorderedElementsAreArray(NamesOf(Vision())));
  EXPECT_TRUE(model.similarity.has_value());
}

TEST(TowerTest, TheEndOfTextsMayBeTheLargestIdOrTheLibrarysDefault) {
  const auto end = [](const std::string& key) {
    const TinyFamily text = Tiny("clip_text");
    const std::string config = absl::StrReplaceAll(text.config, {{", \"eos_token_id\": 9", key}});
    const absl::StatusOr<Checkpoint> checkpoint = Open(config, TensorsOf(text), Tower::kOnly);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? checkpoint->description.pooling->end_id : 0;
  };
  EXPECT_EQ(end(R"(, "eos_token_id": 2)"), PoolingDescription::kLargestId);
  EXPECT_EQ(end(R"(, "eos_token_id": 7)"), 7);
  EXPECT_EQ(end(""), 49407);
}

TEST(TowerTest, AnOlderSectionReplacesTheOther) {
  const std::string config = absl::StrReplaceAll(
      WholeConfig(), {{"\"text_config\"", R"("text_config_dict": {"hidden_size": 8,
          "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 12,
          "vocab_size": 10, "max_position_embeddings": 16}, "text_config")"}});
  const absl::StatusOr<Checkpoint> checkpoint = Open(config, WholeTensors(), Tower::kText);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.layer.attention.heads, 4);
}

TEST(TowerTest, SiglipAttendsToImagesAndPadsTexts) {
  const TinyFamily vision = Tiny("siglip_vision"), text = Tiny("siglip_text");
  const std::string config =
      absl::StrCat(R"({"model_type": "siglip", "text_config": )", text.config,
                   R"(, "vision_config": )", vision.config, "}");
  std::vector<TestTensor> tensors = TensorsOf(vision);
  for (TestTensor& tensor : TensorsOf(text)) tensors.push_back(std::move(tensor));
  tensors.push_back(MakeTensor("logit_scale", {1}));
  tensors.push_back(MakeTensor("logit_bias", {1}));
  absl::StatusOr<Checkpoint> checkpoint = Open(config, tensors, Tower::kVision);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.patch_embedding, (PatchEmbeddingShape{.feature_width = 27,
                                                                          .positions = 9,
                                                                          .needs_every = true,
                                                                          .image_size = 9,
                                                                          .patch_size = 3}));
  EXPECT_TRUE(checkpoint->weights->Has("front.projection.bias"));
  EXPECT_EQ(checkpoint->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kAttention},
                                .dense_width = 8,
                                .block = {12, Activation::kGeluTanh}}));
  EXPECT_EQ(checkpoint->description.similarity,
            (SimilarityShape{.scale = std::exp(TestValues("logit_scale", 1)[0]),
                             .bias = TestValues("logit_bias", 1)[0]}));
  checkpoint = Open(config, tensors, Tower::kText);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.layer.attention.causal);
  EXPECT_EQ(checkpoint->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kLastToken}, .dense_width = 8}));
  EXPECT_FALSE(checkpoint->tokenization.texts_take_mean);
  EXPECT_EQ(checkpoint->tokenization.padding, (TextPadding{.length = 16, .id = 1}));
}

// The files of SigLIP 2 leave out all sizes but that of the vocabulary.
TEST(TowerTest, SiglipsOfDefaultSizesSayNothingOfThem) {
  const TempFolder folder;
  folder.Write("config.json", R"({"architectures": ["SiglipModel"], "model_type": "siglip",
      "text_config": {"model_type": "siglip_text_model", "vocab_size": 256000},
      "vision_config": {"model_type": "siglip_vision_model"}})");
  absl::StatusOr<ModelConfig> config = ReadModelConfig(folder.path(), Tower::kText);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->description.embeddings->vocabulary, 256000);
  EXPECT_EQ(config->description.embeddings->positions, 64);
  EXPECT_EQ(config->description.layer.hidden_size, 768);
  EXPECT_EQ(config->description.layer.norms.epsilon, 1e-6f);
  EXPECT_EQ(config->description.layer.feed_forward.activation, Activation::kGeluTanh);
  config = ReadModelConfig(folder.path(), Tower::kVision);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->description.layers, 12);
  EXPECT_EQ(config->description.layer.attention.heads, 12);
  EXPECT_EQ(config->description.patch_embedding->grid(), 14);
  EXPECT_EQ(config->pooler.block.width, 3072);
}

TEST(TowerTest, PaddingIsThatOfTheTokenizer) {
  const TinyFamily text = Tiny("siglip_text");
  const auto padding = [&](const std::string& settings) {
    const TempFolder folder;
    folder.Write("tokenizer.json", R"({"model": {"type": "BPE"}, "added_tokens":
        [{"id": 0, "content": "<pad>"}, {"id": 4, "content": "</s>"}]})");
    folder.Write("tokenizer_config.json", settings);
    const absl::StatusOr<Checkpoint> checkpoint =
        Open(text.config, TensorsOf(text), Tower::kOnly, folder);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? checkpoint->tokenization.padding : TextPadding();
  };
  EXPECT_EQ(padding(R"({"pad_token": "</s>"})"), (TextPadding{.length = 16, .id = 4}));
  EXPECT_EQ(padding(R"({"pad_token": "<pad>", "tokenizer_class": "GemmaTokenizer"})"),
            (TextPadding{.length = 16, .id = 0, .is_left = true}));
  EXPECT_EQ(padding(R"({"pad_token": "<pad>", "tokenizer_class": "GemmaTokenizer",
                        "padding_side": "right"})"),
            (TextPadding{.length = 16, .id = 0}));
  EXPECT_EQ(padding(R"({"padding_side": "left"})"),
            (TextPadding{.length = 16, .id = 1, .is_left = true}));
}

// The module CLIPModel, or since version 5.4 a Transformer that says so.
class SentenceTowerTest : public ::testing::Test {
 protected:
  absl::StatusOr<Checkpoint> OpenWith(const std::string& type, const std::string& more,
                                      const std::string& settings, Tower tower) {
    const std::string begin = R"({"type": "sentence_transformers.)";
    folder_.Write("modules.json", absl::StrCat("[", begin, type, R"(", "path": "0_CLIPModel"}, )",
                                               begin, more, R"(", "path": "1"}])"));
    folder_.Write("1/config.json", "{}");
    folder_.Write("0_CLIPModel/sentence_bert_config.json", settings);
    folder_.Write("0_CLIPModel/config.json", config_);
    folder_.Write("0_CLIPModel/model.safetensors", MakeSafetensors(tensors_));
    CheckpointOptions options;
    options.tower = tower;
    return OpenCheckpoint(folder_.path(), options);
  }

  std::string RefusalOf(const std::string& type, const std::string& more,
                        const std::string& settings, Tower tower) {
    const absl::Status status = OpenWith(type, more, settings, tower).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  static constexpr char kPools[] = R"({"module_output_name": "sentence_embedding"})";
  std::string config_ = WholeConfig();
  std::vector<TestTensor> tensors_ = WholeTensors();
  TempFolder folder_;
};

TEST_F(SentenceTowerTest, PoolsItself) {
  for (const auto& [type, settings] :
       {std::pair{"models.CLIPModel", "{}"}, std::pair{"models.Transformer", kPools}}) {
    absl::StatusOr<Checkpoint> checkpoint =
        OpenWith(type, "models.Normalize", settings, Tower::kText);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(
        checkpoint->description.pooling,
        (PoolingDescription{
            .modes = {PoolingMode::kLastToken}, .dense_width = 8, .normalize = true, .end_id = 9}));
    EXPECT_EQ(ReadTensor(*checkpoint, "pooling.dense.weight"),
              TestValues("text_projection.weight", 64));
    checkpoint = OpenWith(type, "models.Normalize", settings, Tower::kVision);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->description.pooling->dense_width, 8);
    EXPECT_TRUE(checkpoint->description.pooling->normalize);
  }
}

TEST_F(SentenceTowerTest, IsFollowedByNoOtherPooling) {
  for (const char* more : {"models.Pooling", "models.Dense"}) {
    EXPECT_THAT(RefusalOf("models.CLIPModel", more, "{}", Tower::kText),
                HasSubstr("expected after a Transformer that does not pool by itself"));
  }
}

TEST_F(SentenceTowerTest, NeedsAPooler) {
  config_ = TinyBertConfig();
  tensors_ = TinyBertTensors();
  std::erase_if(tensors_,
                [](const TestTensor& tensor) { return tensor.name.starts_with("pooler."); });
  EXPECT_THAT(RefusalOf("models.Transformer", "models.Normalize", kPools, Tower::kOnly),
              HasSubstr("modules.json: requires a model with a pooler (its Transformer outputs "
                        "sentence_embedding), which the family bert does not have"));
}

TEST_F(SentenceTowerTest, MustHaveReadableSettings) {
  EXPECT_THAT(RefusalOf("models.Transformer", "models.Normalize", "{", Tower::kText),
              HasSubstr("sentence_bert_config.json"));
}

TEST(TowerTest, AScaleThatIsNoNumberIsRefused) {
  std::vector<TestTensor> tensors = WholeTensors();
  tensors.back() = MakeTensor("logit_scale", {2});
  EXPECT_THAT(Refusal(WholeConfig(), tensors, Tower::kText),
              HasSubstr("tensor 'logit_scale' F32 [2]: expected F32, F16, BF16 or F64 [1]"));
}

TEST(TowerTest, NaFlexIsRefusedWithTheReason) {
  for (const Tower tower : {Tower::kOnly, Tower::kText, Tower::kVision}) {
    EXPECT_THAT(Refusal(R"({"model_type": "siglip2", "vision_config": {}})", {}, tower),
                HasSubstr("model_type: not supported: it is NaFlex"));
  }
}

TEST(TowerTest, AloneMayBeNamedOrNot) {
  for (const Tower tower : {Tower::kOnly, Tower::kVision}) {
    EXPECT_TRUE(Open(Vision().config, TensorsOf(Vision()), tower).ok());
  }
  // The library saves a tower by itself without the prefix.
  for (const char* name : {"clip_vision", "clip_text", "siglip_vision", "siglip_text"}) {
    const TinyFamily family = Tiny(name);
    const std::string prefix =
        std::string(name).ends_with("text") ? "text_model." : "vision_model.";
    const absl::StatusOr<Checkpoint> checkpoint =
        Open(family.config, Without(prefix, TensorsOf(family)), Tower::kOnly);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  }
}

TEST(TowerTest, WithoutProjectionThePooledRowIsTheVector) {
  for (const char* name : {"clip_vision", "clip_text"}) {
    const TinyFamily family = Tiny(name);
    std::vector<TestTensor> tensors = TensorsOf(family);
    std::erase_if(tensors, [](const TestTensor& tensor) {
      return tensor.name.ends_with("_projection.weight");
    });
    const absl::StatusOr<Checkpoint> checkpoint = Open(family.config, tensors, Tower::kOnly);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_TRUE(checkpoint->description.pooling.has_value()) << name;
    EXPECT_EQ(checkpoint->description.pooling->dense_width, 0) << name;
  }
}

TEST(TowerTest, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(Refusal(WholeConfig(), WholeTensors(), Tower::kOnly),
              HasSubstr("tower: missing; clip has two towers; set tower=text or tower=vision"));
  EXPECT_THAT(Refusal(Vision().config, TensorsOf(Vision()), Tower::kText),
              HasSubstr("tower: expected vision (a clip_vision_model has only this tower); got "
                        "text"));
  EXPECT_THAT(Refusal(TinyBertConfig(), TinyBertTensors(), Tower::kVision),
              HasSubstr("tower: not supported (the checkpoint has no towers); got vision"));
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
                "token; got 5"));
  EXPECT_THAT(with("\"patch_size\": 3", "\"patch_size\": 7"),
              HasSubstr("patch_size: expected at most image_size 6; got 7"));
  EXPECT_THAT(with("\"patch_size\": 3", "\"patch_size\": 3, \"num_channels\": 1"),
              HasSubstr("num_channels: expected an integer in 3..3; got 1"));
  EXPECT_THAT(with("\"vision_config\": {", "\"vision_config\": 7, \"other\": {"),
              HasSubstr("vision_config: expected an object; got 7"));
}

}  // namespace towers_test
}  // namespace attendant
