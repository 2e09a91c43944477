#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "engine/checkpoint/files/choices.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace pooling_choice_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PoolingDescription kPooler = {{PoolingMode::kFirstToken}, 4, Activation::kTanh};

// A tiny BERT with a pooler and a tokenizer, and no modules.json.
class PoolingChoiceTest : public ::testing::Test {
 protected:
  PoolingChoiceTest() {
    folder_.Write("config.json", TinyBertConfig());
    folder_.Write("tokenizer.json", R"({"model": {}, "added_tokens": []})");
    WriteWeights({"pooler.dense"});
  }

  void WriteWeights(const std::vector<std::string>& heads, int64_t outputs = 4) {
    std::vector<TestTensor> tensors = TinyBertTensors();
    for (const std::string& head : heads) {
      tensors.push_back(MakeTensor(head + ".weight", {outputs, 4}));
      tensors.push_back(MakeTensor(head + ".bias", {outputs}));
    }
    folder_.Write("model.safetensors", MakeSafetensors(tensors));
  }

  absl::StatusOr<Checkpoint> Open(PoolingChoice choice = PoolingChoice::kAsFiles) {
    CheckpointOptions options;
    options.pooling = choice;
    return OpenCheckpoint(folder_.path(), options);
  }

  TempFolder folder_;
};

TEST_F(PoolingChoiceTest, TextsTakeTheMeanWithoutModulesAndIdsThePooler) {
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->tokenization.texts_take_mean);
  EXPECT_EQ(checkpoint->description.pooling, kPooler);
  EXPECT_THAT(checkpoint->warnings,
              ElementsAre(HasSubstr(
                  ": no modules.json: the vector of a text is the mean of its tokens, as in "
                  "sentence-transformers; MODEL_POOLING of token ids uses the "
                  "pooler; the option pooling=mean or pooling=pooler decides for both")));
}

TEST_F(PoolingChoiceTest, TextsTakeTheMeanWithoutAPooler) {
  WriteWeights({});
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->tokenization.texts_take_mean);
  EXPECT_FALSE(checkpoint->description.pooling.has_value());
  EXPECT_THAT(checkpoint->warnings, ElementsAre(HasSubstr("as in sentence-transformers; the "
                                                          "option pooling=mean decides for both")));
}

TEST_F(PoolingChoiceTest, SaysNothingOfTextsWithoutATokenizer) {
  std::filesystem::remove(folder_.File("tokenizer.json"));
  EXPECT_THAT(Open()->warnings, IsEmpty());
}

TEST_F(PoolingChoiceTest, AHeadOfClassesKeepsItsPooling) {
  for (const char* architecture : {"BertForSequenceClassification", "BertForTokenClassification"}) {
    folder_.Write("config.json",
                  absl::StrReplaceAll(TinyBertConfig(), {{"BertModel", architecture}}));
    WriteWeights({"pooler.dense", "classifier"});
    const absl::StatusOr<Checkpoint> checkpoint = Open();
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->tokenization.texts_take_mean) << architecture;
    EXPECT_EQ(checkpoint->description.pooling, kPooler);
    EXPECT_THAT(checkpoint->warnings, IsEmpty());
  }
}

TEST_F(PoolingChoiceTest, AChoiceIsThatOfTextsAndIds) {
  for (const auto& [choice, mode] : {std::pair{PoolingChoice::kMean, PoolingMode::kMean},
                                     {PoolingChoice::kMax, PoolingMode::kMax},
                                     {PoolingChoice::kFirstToken, PoolingMode::kFirstToken},
                                     {PoolingChoice::kLastToken, PoolingMode::kLastToken}}) {
    const absl::StatusOr<Checkpoint> checkpoint = Open(choice);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->tokenization.texts_take_mean);
    EXPECT_EQ(checkpoint->description.pooling, (PoolingDescription{.modes = {mode}}));
    EXPECT_THAT(checkpoint->unused_tensors,
                ElementsAre("pooler.dense.bias", "pooler.dense.weight"));
    EXPECT_THAT(checkpoint->warnings, IsEmpty());
  }
  const absl::StatusOr<Checkpoint> checkpoint = Open(PoolingChoice::kPooler);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->tokenization.texts_take_mean);
  EXPECT_EQ(checkpoint->description.pooling, kPooler);
  EXPECT_THAT(checkpoint->warnings, IsEmpty());
}

TEST_F(PoolingChoiceTest, RefusesAPoolerThatIsNotThere) {
  WriteWeights({});
  const absl::Status status = Open(PoolingChoice::kPooler).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("pooling=pooler: not supported: the checkpoint has no pooler; use mean"));
}

TEST_F(PoolingChoiceTest, ReplacesTheModesOfModules) {
  const std::string modules = R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "", "type": "sentence_transformers.models.Normalize"}])";
  folder_.Write("modules.json", modules);
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": ["mean", "max"]})");
  const absl::StatusOr<Checkpoint> checkpoint = Open(PoolingChoice::kLastToken);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kLastToken}, .normalize = true}));
  EXPECT_THAT(Open(PoolingChoice::kPooler).status().message(),
              HasSubstr(": pooling=pooler: cannot be combined with modules.json"));
  folder_.Write("modules.json", modules.substr(0, modules.find("},") + 1) + "]");
  EXPECT_EQ(Open(PoolingChoice::kMean)->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kMean}}));
}

TEST(PoolingChoice, IsRefusedForOtherSources) {
  CheckpointOptions options;
  options.pooling = PoolingChoice::kMean;
  EXPECT_THAT(
      OpenCheckpoint("synthetic:tiny", options).status().message(),
      HasSubstr(
          "synthetic:tiny: pooling: not supported: only Hugging Face models have this option"));
  TempFolder folder;
  folder.Write("attendant.json", "{}");
  EXPECT_THAT(OpenCheckpoint(folder.path(), options).status().message(),
              HasSubstr(": pooling: not supported"));
}

}  // namespace pooling_choice_test
}  // namespace attendant
