#include "engine/checkpoint/sentence_transformers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace sentence_transformers_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Module(const std::string& type, const std::string& path) {
  return absl::StrCat(R"({"idx":0,"name":"0","path":")", path,
                      R"(","type":"sentence_transformers.models.)", type, "\"}");
}

// A tiny BERT with mean pooling, a dense layer with tanh, and normalisation.
class SentenceTransformers : public ::testing::Test {
 protected:
  SentenceTransformers() {
    folder_.Write("config.json", TinyBertConfig());
    std::vector<TestTensor> tensors = TinyBertTensors();
    tensors.push_back(MakeTensor("pooler.dense.weight", {4, 4}));
    folder_.Write("model.safetensors", MakeSafetensors(tensors));
    folder_.Write("1_Pooling/config.json",
                  R"({"word_embedding_dimension": 4, "pooling_mode_cls_token": false,
                      "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false})");
    folder_.Write("2_Dense/config.json",
                  R"({"in_features": 4, "out_features": 3, "bias": true,
                      "activation_function": "torch.nn.modules.activation.Tanh"})");
    folder_.Write("2_Dense/model.safetensors", MakeSafetensors({MakeTensor("linear.weight", {3, 4}),
                                                                MakeTensor("linear.bias", {3})}));
    WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling"),
                  Module("Dense", "2_Dense"), Module("Normalize", "3_Normalize")});
  }

  void WriteModules(const std::vector<std::string>& modules) {
    std::string list;
    for (const std::string& module : modules) {
      absl::StrAppend(&list, list.empty() ? "[" : ",", module);
    }
    folder_.Write("modules.json", list + "]");
  }

  absl::StatusOr<Checkpoint> Open() { return OpenCheckpoint(folder_.path(), {}); }

  PoolingDescription Pooling() {
    const absl::StatusOr<Checkpoint> checkpoint = Open();
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok() || !checkpoint->description.pooling) return {};
    return *checkpoint->description.pooling;
  }

  std::string Refusal() {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(SentenceTransformers, ReadsAllModules) {
  absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const PoolingDescription expected = {{PoolingMode::kMean}, 3, Activation::kTanh, true};
  EXPECT_EQ(checkpoint->description.pooling, expected);
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.dense.weight"), TestValues("linear.weight", 12));
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.dense.bias"), TestValues("linear.bias", 3));
  EXPECT_EQ(ReadTensor(*checkpoint, "layer.1.query.bias"),
            TestValues("encoder.layer.1.attention.self.query.bias", 4));
  EXPECT_THAT(checkpoint->unused_tensors, ElementsAre("pooler.dense.weight"));
}

TEST_F(SentenceTransformers, ConcatenatesModesInTheLibrarysOrder) {
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode_lasttoken": true,
                    "pooling_mode_weightedmean_tokens": true,
                    "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_mean_tokens": true,
                    "pooling_mode_max_tokens": true, "pooling_mode_cls_token": true})");
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Pooling().modes,
              ElementsAre(PoolingMode::kFirstToken, PoolingMode::kMax, PoolingMode::kMean,
                          PoolingMode::kMeanSqrtLen, PoolingMode::kPositionWeightedMean,
                          PoolingMode::kLastToken));
  EXPECT_EQ(Pooling().width(4), 24);
  EXPECT_FALSE(Pooling().normalize);
  EXPECT_EQ(Pooling().dense_width, 0);
}

TEST_F(SentenceTransformers, ReadsModesByName) {
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling")});
  folder_.Write("1_Pooling/config.json", R"({"embedding_dimension": 4, "pooling_mode": "cls"})");
  EXPECT_THAT(Pooling().modes, ElementsAre(PoolingMode::kFirstToken));
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": ["mean", "cls", "weightedmean"]})");
  EXPECT_THAT(Pooling().modes, ElementsAre(PoolingMode::kMean, PoolingMode::kFirstToken,
                                           PoolingMode::kPositionWeightedMean));
}

// As of ColBERT: a vector for each token.
TEST_F(SentenceTransformers, ADenseLayerWithoutPoolingIsOfTokens) {
  for (const char* type : {"sentence_transformers.models.Dense", "pylate.models.Dense.Dense"}) {
    folder_.Write("modules.json", absl::StrCat("[", Module("Transformer", ""),
                                               R"(,{"path":"2_Dense","type":")", type, "\"}]"));
    absl::StatusOr<Checkpoint> checkpoint = Open();
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->description.pooling.has_value());
    const PoolingDescription expected = {
        .modes = {}, .dense_width = 3, .dense_activation = Activation::kTanh};
    EXPECT_EQ(checkpoint->description.token_head, expected);
    EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.weight"), TestValues("linear.weight", 12));
    EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.bias"), TestValues("linear.bias", 3));
  }
}

TEST_F(SentenceTransformers, RefusesATokenDenseThatIsSomethingElse) {
  WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense")});
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 4, "out_features": 3, "use_residual": true,
                    "module_output_name": "sentence_embedding",
                    "activation_function": "torch.nn.modules.activation.Tanh"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("module_output_name: expected 'token_embeddings', found "
                                         "'sentence_embedding'"),
                               HasSubstr("use_residual: expected false, found true")));
}

TEST_F(SentenceTransformers, RefusesADenseLayerOnTokensThatArePooled) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 4, "out_features": 3, "bias": true,
                    "module_input_name": "token_embeddings",
                    "activation_function": "torch.nn.modules.activation.Tanh"})");
  EXPECT_THAT(Refusal(), HasSubstr("module_input_name: expected 'sentence_embedding', found "
                                   "'token_embeddings'"));
}

TEST_F(SentenceTransformers, ReadsADenseLayerWithoutBias) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 4, "out_features": 3, "bias": false,
                    "activation_function": "torch.nn.modules.linear.Identity"})");
  EXPECT_THAT(Refusal(), HasSubstr("2_Dense/model.safetensors: tensor 'linear.bias' F32 [3]: "
                                   "expected no tensor of that name"));
  folder_.Write("2_Dense/model.safetensors",
                MakeSafetensors({MakeTensor("linear.weight", {3, 4})}));
  absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->weights->Has("pooling.dense.bias"));
  EXPECT_EQ(checkpoint->description.pooling->dense_activation, Activation::kIdentity);
}

TEST_F(SentenceTransformers, ReadsATransformerInItsOwnFolder) {
  std::filesystem::create_directory(folder_.File("0_Transformer"));
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::rename(folder_.File(name), folder_.File(absl::StrCat("0_Transformer/", name)));
  }
  WriteModules({Module("Transformer", "0_Transformer"), Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Pooling().modes, ElementsAre(PoolingMode::kMean));
}

TEST_F(SentenceTransformers, LeavesPoolingOutIfThereIsNone) {
  WriteModules({Module("Transformer", "")});
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.pooling.has_value());
  EXPECT_THAT(checkpoint->warnings, IsEmpty());
}

TEST_F(SentenceTransformers, RefusesModulesItDoesNotKnow) {
  WriteModules({Module("Transformer", ""), Module("LSTM", "1_LSTM")});
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("modules.json: type: expected Transformer, Pooling, Dense, "
                              "Normalize or SpladePooling of sentence_transformers, "
                              "found"),
                    HasSubstr("'sentence_transformers.models.LSTM'")));
  folder_.Write("modules.json", R"([{"path": "", "type": "custom_st.Transformer"}])");
  EXPECT_THAT(Refusal(), HasSubstr("found 'custom_st.Transformer'"));
}

TEST_F(SentenceTransformers, RefusesModulesInAnotherOrder) {
  WriteModules(
      {Module("Transformer", ""), Module("Normalize", ""), Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Refusal(), HasSubstr("at most once and in this order, found another Pooling"));
  WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense"), Module("Dense", "2_Dense")});
  EXPECT_THAT(Refusal(), HasSubstr("found another Dense"));
  WriteModules({Module("Transformer", ""), Module("Normalize", "")});
  EXPECT_THAT(Refusal(), HasSubstr("expected a Pooling or a Dense before Normalize, found none"));
  WriteModules({Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Refusal(), HasSubstr("expected a Transformer, found none"));
}

TEST_F(SentenceTransformers, RefusesBadLists) {
  folder_.Write("modules.json", "{}");
  EXPECT_THAT(Refusal(), HasSubstr("modules.json: expected a list of at most 16 modules"));
  WriteModules({Module("Transformer", "../elsewhere")});
  EXPECT_THAT(Refusal(), HasSubstr("path: expected the plain name of a folder in this one, found "
                                   "'../elsewhere'"));
  folder_.Write("modules.json", "[5]");
  EXPECT_THAT(Refusal(), HasSubstr("expected an object, found 5"));
}

TEST_F(SentenceTransformers, RefusesBadPooling) {
  folder_.Write("1_Pooling/config.json", R"({"word_embedding_dimension": 5})");
  EXPECT_THAT(Refusal(),
              HasSubstr("1_Pooling/config.json: word_embedding_dimension or embedding_dimension: "
                        "expected an integer from 4 to 4, found 5"));
  folder_.Write("1_Pooling/config.json", R"({"word_embedding_dimension": 4})");
  EXPECT_THAT(Refusal(), HasSubstr("expected 1 to 6 pooling modes, found 0"));
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode_mean_tokens": "true"})");
  EXPECT_THAT(Refusal(), HasSubstr("pooling_mode_mean_tokens: expected true or false"));
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": ["mean", "median", 5]})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("2 problems: pooling_mode: expected cls, max, mean,"),
                               HasSubstr("found 'median'"), HasSubstr("found 5")));
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": [
                    "max", "max", "max", "max", "max", "max", "max"]})");
  EXPECT_THAT(Refusal(), HasSubstr("expected 1 to 6 pooling modes, found 7"));
}

TEST_F(SentenceTransformers, RefusesBadDense) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 5, "out_features": 0, "bias": true,
                    "activation_function": "torch.nn.modules.activation.Hardswish"})");
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("2_Dense/config.json: 3 problems: "),
                    HasSubstr("in_features: expected an integer from 4 to 4, found 5"),
                    HasSubstr("out_features: expected an integer from 1 to 65536, found 0"),
                    HasSubstr("activation_function: expected one of")));
}

TEST_F(SentenceTransformers, TellsProblemsOfBothFilesAtOnce) {
  folder_.Write("2_Dense/model.safetensors",
                MakeSafetensors({MakeTensor("linear.weight", {4, 4}), MakeTensor("x", {1})}));
  std::vector<TestTensor> tensors = TinyBertTensors();
  tensors.pop_back();
  folder_.Write("model.safetensors", MakeSafetensors(tensors));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("4 problems: "), HasSubstr("'linear.weight' F32 [4, 4]: expected"),
                    HasSubstr("linear.bias': expected [3], found none"),
                    HasSubstr("tensor 'x' F32 [1]: expected no tensor of that name"),
                    HasSubstr("'encoder.layer.1.output.LayerNorm.weight'")));
}

}  // namespace sentence_transformers_test
}  // namespace attendant
