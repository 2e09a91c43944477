// Tests of the heads that FlagEmbedding saves beside an encoder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace m3_heads_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kTokenizer[] = R"({"version": "1.0", "added_tokens": [
  {"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "<pad>", "special": true},
  {"id": 2, "content": "</s>", "special": true}, {"id": 3, "content": "<unk>", "special": true},
  {"id": 9, "content": "<mask>", "special": true}],
  "model": {"type": "WordLevel", "vocab": {}, "unk_token": "<unk>"}})";
constexpr char kSpecialTokens[] =
    R"({"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>",
        "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"})";

std::string HeadFile(const std::string& name, int64_t rows) {
  std::vector<TestTensor> tensors = {MakeTensor("weight", {rows, 4}), MakeTensor("bias", {rows})};
  tensors[0].bytes = Encode(TestValues(name + ".weight", rows * 4), "F32");
  tensors[1].bytes = Encode(TestValues(name + ".bias", rows), "F32");
  return MakeSafetensors(tensors);
}

class M3HeadsTest : public ::testing::Test {
 protected:
  M3HeadsTest() {
    folder_.Write("config.json", TinyBertConfig());
    folder_.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write("tokenizer.json", kTokenizer);
    folder_.Write("tokenizer_config.json", kSpecialTokens);
  }

  void WriteHeads() {
    folder_.Write("sparse_linear.safetensors", HeadFile("sparse", 1));
    folder_.Write("colbert_linear.safetensors", HeadFile("colbert", 3));
  }

  Checkpoint Open(const CheckpointOptions& options = {}) {
    absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder_.path(), options);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
  }

  const TempFolder folder_;
};

TEST_F(M3HeadsTest, AreReadFromTheirFiles) {
  WriteHeads();
  Checkpoint checkpoint = Open();
  const PoolingDescription lexical = {.modes = {},
                                      .dense_width = 1,
                                      .dense_activation = Activation::kRelu,
                                      .excluded_ids = {0, 1, 2, 3}};
  EXPECT_EQ(checkpoint.description.lexical_head, lexical);
  const PoolingDescription vectors = {
      .modes = {}, .dense_width = 3, .normalize = true, .excludes_first = true};
  EXPECT_EQ(checkpoint.description.token_head, vectors);
  EXPECT_TRUE(checkpoint.tokenization.is_multi_vector);
  EXPECT_EQ(checkpoint.description.sparse_width(), 10);
  EXPECT_EQ(ReadTensor(checkpoint, "lexical_head.dense.weight"), TestValues("sparse.weight", 4));
  EXPECT_EQ(ReadTensor(checkpoint, "lexical_head.dense.bias"), TestValues("sparse.bias", 1));
  EXPECT_EQ(ReadTensor(checkpoint, "token_head.dense.weight"), TestValues("colbert.weight", 12));
  EXPECT_EQ(ReadTensor(checkpoint, "token_head.dense.bias"), TestValues("colbert.bias", 3));
}

TEST_F(M3HeadsTest, WithoutModulesTheVectorOfATextIsThatOfItsFirstToken) {
  EXPECT_TRUE(Open().tokenization.texts_take_mean);
  WriteHeads();
  const Checkpoint checkpoint = Open();
  EXPECT_FALSE(checkpoint.tokenization.texts_take_mean);
  const PoolingDescription expected = {.modes = {PoolingMode::kFirstToken}, .normalize = true};
  EXPECT_EQ(checkpoint.description.pooling, expected);
  CheckpointOptions mean;
  mean.pooling = PoolingChoice::kMean;
  EXPECT_EQ(Open(mean).description.pooling, PoolingDescription{.modes = {PoolingMode::kMean}});
}

TEST_F(M3HeadsTest, ModulesSayHowToPool) {
  WriteHeads();
  folder_.Write("modules.json", R"([
      {"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode_max_tokens": true})");
  const Checkpoint checkpoint = Open();
  EXPECT_EQ(checkpoint.description.pooling, PoolingDescription{.modes = {PoolingMode::kMax}});
  EXPECT_TRUE(checkpoint.description.lexical_head.has_value());
}

TEST_F(M3HeadsTest, WithoutSpecialTokensAWarningSaysThatAllHaveWeights) {
  WriteHeads();
  EXPECT_THAT(Open().warnings, Each(Not(HasSubstr("weight special tokens"))));
  folder_.Write("tokenizer_config.json", "{}");
  const Checkpoint checkpoint = Open();
  EXPECT_TRUE(checkpoint.description.lexical_head->excluded_ids.empty());
  EXPECT_THAT(checkpoint.warnings, Contains(HasSubstr("sparse vectors weight special tokens")));
}

TEST_F(M3HeadsTest, EachMayBeAlone) {
  folder_.Write("sparse_linear.safetensors", HeadFile("sparse", 1));
  Checkpoint checkpoint = Open();
  EXPECT_TRUE(checkpoint.description.lexical_head.has_value());
  EXPECT_FALSE(checkpoint.description.token_head.has_value());
  EXPECT_FALSE(checkpoint.tokenization.is_multi_vector);
  EXPECT_FALSE(checkpoint.tokenization.texts_take_mean);
}

TEST_F(M3HeadsTest, PicklesBecomeAWarningThatSaysHowToConvertThem) {
  folder_.Write("sparse_linear.pt", "pickle");
  folder_.Write("colbert_linear.pt", "pickle");
  Checkpoint checkpoint = Open();
  EXPECT_FALSE(checkpoint.description.lexical_head.has_value());
  EXPECT_THAT(
      checkpoint.warnings,
      Contains(AllOf(StartsWith(folder_.path() + ": sparse_linear.pt and colbert_linear.pt: "
                                                 "only safetensors are read, so the "
                                                 "model has no sparse vectors and no token "
                                                 "vectors; convert them in that directory: "
                                                 "python3 -c \"import torch, "),
                     HasSubstr("weights_only=True"),
                     HasSubstr("for n in ['sparse_linear', 'colbert_linear']]\""))));
  folder_.Write("sparse_linear.safetensors", HeadFile("sparse", 1));
  checkpoint = Open();
  EXPECT_TRUE(checkpoint.description.lexical_head.has_value());
  EXPECT_THAT(
      checkpoint.warnings,
      Contains(AllOf(HasSubstr(": colbert_linear.pt: only safetensors are read, so the "
                               "model has no token vectors; convert it in that directory: "),
                     HasSubstr("for n in ['colbert_linear']]\""))));
  folder_.Write("colbert_linear.safetensors", HeadFile("colbert", 2));
  EXPECT_THAT(Open().warnings, Each(Not(HasSubstr("linear.pt"))));
}

TEST_F(M3HeadsTest, RefusesFilesThatDoNotFit) {
  const auto refusal = [&](const std::string& file, const std::string& content) {
    WriteHeads();
    folder_.Write(file, content);
    return std::string(OpenCheckpoint(folder_.path(), {}).status().message());
  };
  EXPECT_THAT(refusal("sparse_linear.safetensors", HeadFile("sparse", 2)),
              HasSubstr("/sparse_linear.safetensors: expected weight [1, 4] (one number for each "
                        "token); got 2 rows"));
  EXPECT_THAT(
      refusal("colbert_linear.safetensors", MakeSafetensors({MakeTensor("weight", {3, 5})})),
      AllOf(HasSubstr("tensor 'weight' F32 [3, 5]: expected F32, F16, BF16 or F64 [3, 4]"),
            HasSubstr("colbert_linear/bias': missing; expected [3]")));
  EXPECT_THAT(refusal("colbert_linear.safetensors",
                      MakeSafetensors({MakeTensor("weight", {3, 4}), MakeTensor("bias", {3}),
                                       MakeTensor("other", {1})})),
              HasSubstr("tensor 'other' F32 [1]: unexpected in this model"));
}

}  // namespace m3_heads_test
}  // namespace attendant
