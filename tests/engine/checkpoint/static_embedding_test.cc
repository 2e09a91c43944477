// Tests of models without layers: StaticEmbedding of sentence-transformers, and model2vec.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace static_embedding_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTokenizer[] = R"({"version": "1.0",
    "truncation": {"direction": "Left", "max_length": 7, "strategy": "LongestFirst", "stride": 0},
    "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a",
    "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"a":
    {"id": "a", "ids": [1], "tokens": ["a"]}}},
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"}})";

// The bytes of integers, as files have them.
template <class T>
TestTensor Integers(const std::string& name, const std::string& dtype,
                    const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, {static_cast<int64_t>(values.size())}, dtype, bytes};
}

class StaticEmbeddingTest : public ::testing::Test {
 protected:
  // A folder of sentence-transformers: the table and further modules.
  void WriteModules(const std::string& path, const std::string& more = "") {
    folder_.Write(
        "modules.json",
        absl::StrCat(R"([{"path": ")", path,
                     R"(", "type": "sentence_transformers.models.StaticEmbedding"})", more, "]"));
  }
  void WriteTensors(const std::vector<TestTensor>& tensors, const std::string& path = "") {
    folder_.Write(path + "model.safetensors", MakeSafetensors(tensors));
    folder_.Write(path + "tokenizer.json", kTokenizer);
  }
  absl::StatusOr<Checkpoint> Open(const CheckpointOptions& options = {}) {
    return OpenCheckpoint(folder_.path(), options);
  }
  std::string Refusal(const CheckpointOptions& options = {}) {
    const absl::Status status = Open(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(StaticEmbeddingTest, IsATableAndAMean) {
  WriteModules("0_StaticEmbedding");
  WriteTensors({MakeTensor("embedding.weight", {3, 4})}, "0_StaticEmbedding/");
  absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  EXPECT_EQ(model.layers, 0);
  EXPECT_EQ(model.layer.hidden_size, 4);
  EXPECT_EQ(model.embeddings, (EmbeddingShape{.width = 4, .vocabulary = 3, .has_norm = false}));
  EXPECT_EQ(model.pooling, (PoolingDescription{.modes = {PoolingMode::kMean}}));
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"), TestValues("embedding.weight", 12));
  EXPECT_THAT(checkpoint->warnings, IsEmpty());
  EXPECT_THAT(checkpoint->unused_tensors, IsEmpty());
}

TEST_F(StaticEmbeddingTest, TakesTheTokenizerWithoutSpecialTokens) {
  WriteModules(".");
  for (const char* other : {"vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json"}) {
    folder_.Write(other, "{}");
  }
  WriteTensors({MakeTensor("embedding.weight", {3, 4})});
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Tokenization& tokenization = checkpoint->tokenization;
  EXPECT_THAT(tokenization.tokenizer_json, HasSubstr("\"post_processor\":null"));
  EXPECT_THAT(tokenization.tokenizer_json, HasSubstr("WhitespaceSplit"));
  EXPECT_EQ(tokenization.files.at("tokenizer.json"), tokenization.tokenizer_json);
  EXPECT_EQ(tokenization.files.size(), 1);
  EXPECT_EQ(tokenization.max_sequence_length, 7);
  EXPECT_TRUE(tokenization.truncates_left);
}

TEST_F(StaticEmbeddingTest, MayBeFollowedByModulesOfVectors) {
  WriteModules("", R"(, {"path": "1_Dense", "type": "sentence_transformers.models.Dense"},
      {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})");
  WriteTensors({MakeTensor("embedding.weight", {3, 4})});
  folder_.Write("1_Dense/config.json", R"({"in_features": 4, "out_features": 2, "bias": false,
      "activation_function": "torch.nn.modules.linear.Identity"})");
  folder_.Write("1_Dense/model.safetensors",
                MakeSafetensors({MakeTensor("linear.weight", {2, 4})}));
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(
      checkpoint->description.pooling,
      (PoolingDescription{.modes = {PoolingMode::kMean}, .dense_width = 2, .normalize = true}));
}

TEST_F(StaticEmbeddingTest, FoldsMappingAndWeightsOfModel2Vec) {
  folder_.Write("config.json", R"({"model_type": "model2vec", "normalize": true})");
  const std::vector<float> rows = TestValues("embeddings", 8);
  const std::vector<float> weights = TestValues("weights", 3);
  for (const bool is_wide : {true, false}) {
    WriteTensors({MakeTensor("embeddings", {2, 4}), MakeTensor("weights", {3}),
                  is_wide ? Integers<int64_t>("mapping", "I64", {1, 0, 1})
                          : Integers<int32_t>("mapping", "I32", {1, 0, 1})});
    absl::StatusOr<Checkpoint> checkpoint = Open();
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->description.embeddings->vocabulary, 3);
    EXPECT_TRUE(checkpoint->description.pooling->normalize);
    const std::vector<float> table = ReadTensor(*checkpoint, "embeddings.word");
    for (int token = 0; token < 3; ++token) {
      for (int c = 0; c < 4; ++c) {
        EXPECT_EQ(table[token * 4 + c], rows[(token == 1 ? 0 : 4) + c] * weights[token]);
      }
    }
    EXPECT_THAT(checkpoint->unused_tensors, IsEmpty());
  }
}

TEST_F(StaticEmbeddingTest, OfModel2VecIsNormalizedByItsModules) {
  folder_.Write("config.json", R"({"model_type": "model2vec", "normalize": true})");
  WriteModules(".");
  WriteTensors({MakeTensor("embeddings", {3, 4}), MakeTensor("other", {3})});
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.pooling->normalize);
  EXPECT_THAT(checkpoint->unused_tensors, ElementsAre("other"));
}

TEST_F(StaticEmbeddingTest, RefusesMappingsThatDoNotFit) {
  folder_.Write("config.json", R"({"model_type": "model2vec"})");
  WriteTensors({MakeTensor("embeddings", {2, 4}), Integers<int64_t>("mapping", "I64", {1, 2, 1})});
  EXPECT_THAT(
      Refusal(),
      HasSubstr("model.safetensors: tensor 'mapping' I64 [3]: expected 0..1; got 2 for token 1"));
  WriteTensors({MakeTensor("embeddings", {2, 4}), Integers<int64_t>("mapping", "I64", {1})});
  EXPECT_THAT(Refusal(),
              HasSubstr("tensor 'mapping' I64 [1]: expected I64 or I32 [tokens], for 2"));
  WriteTensors({MakeTensor("embeddings", {2, 4}), MakeTensor("mapping", {3})});
  EXPECT_THAT(Refusal(), HasSubstr("tensor 'mapping' F32 [3]: expected I64 or I32"));
  WriteTensors({MakeTensor("embeddings", {2, 4}), MakeTensor("weights", {3})});
  EXPECT_THAT(Refusal(), HasSubstr("tensor 'weights' F32 [3]: expected F32, F16, BF16 or F64 [2]"));
}

TEST_F(StaticEmbeddingTest, RefusesOtherTables) {
  WriteModules("");
  WriteTensors({MakeTensor("words", {3, 4})});
  EXPECT_THAT(Refusal(), HasSubstr("tensor 'embedding.weight' or 'embeddings': missing"));
  WriteTensors({MakeTensor("embeddings", {12})});
  EXPECT_THAT(
      Refusal(),
      HasSubstr("tensor 'embeddings' F32 [12]: expected 1..16777216 rows of 1..65536 columns"));
  WriteTensors({Integers<int8_t>("embedding.weight", "I8", {1, 2, 3})});
  EXPECT_THAT(Refusal(), HasSubstr("tensor 'embedding.weight' I8 [3]: expected 1.."));
}

TEST_F(StaticEmbeddingTest, RefusesOtherPoolings) {
  WriteTensors({MakeTensor("embedding.weight", {3, 4})});
  WriteModules("");
  CheckpointOptions options;
  options.pooling = PoolingChoice::kMax;
  EXPECT_THAT(Refusal(options),
              HasSubstr("pooling: not supported: static embeddings are the mean of their tokens"));
  options.pooling = PoolingChoice::kAsFiles;
  options.task = "retrieval";
  EXPECT_THAT(Refusal(options), HasSubstr("task: not supported by static embeddings"));
  WriteModules("", R"(, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})");
  EXPECT_THAT(Refusal(),
              HasSubstr("StaticEmbedding: cannot be combined with Pooling, SpladePooling"));
  WriteModules("", R"(, {"path": "", "type": "sentence_transformers.models.Transformer"})");
  EXPECT_THAT(Refusal(), HasSubstr("expected only once"));
}

class SparseStaticEmbeddingTest : public StaticEmbeddingTest {
 protected:
  SparseStaticEmbeddingTest() {
    folder_.Write("modules.json",
                  R"([{"path": "", "type": "sentence_transformers.base.modules.router.Router"}])");
    folder_.Write("router_config.json", R"({
        "types": {"query_0_SparseStaticEmbedding":
          "sentence_transformers.sparse_encoder.models.SparseStaticEmbedding"},
        "structure": {"query": ["query_0_SparseStaticEmbedding"]}, "parameters": {}})");
    options_.route = "query";
    WriteTensors({MakeTensor("weight", {3})}, kModule);
    folder_.Write(absl::StrCat(kModule, "config.json"), R"({"frozen": true})");
    folder_.Write(absl::StrCat(kModule, "tokenizer_config.json"),
                  R"({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 5})");
  }

  static constexpr char kModule[] = "query_0_SparseStaticEmbedding/";
  CheckpointOptions options_;
};

TEST_F(SparseStaticEmbeddingTest, WeighsEachWordAlone) {
  folder_.Write("config_sentence_transformers.json", R"({"prompts": {"query": "a "}})");
  absl::StatusOr<Checkpoint> checkpoint = Open(options_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  EXPECT_EQ(model.family, "sparse_static_embedding");
  EXPECT_EQ(model.layers, 0);
  EXPECT_EQ(model.embeddings, (EmbeddingShape{.width = 1, .vocabulary = 3, .has_norm = false}));
  EXPECT_EQ(model.lexical_head, (PoolingDescription{.modes = {}}));
  EXPECT_FALSE(model.pooling.has_value());
  EXPECT_EQ(model.sparse_width(), 3);
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"), TestValues("weight", 3));
  const Tokenization& read = checkpoint->tokenization;
  EXPECT_TRUE(read.leaves_out_special_tokens);
  EXPECT_THAT(read.tokenizer_json, HasSubstr(R"("post_processor":null)"));
  EXPECT_EQ(read.max_sequence_length, 5);  // not where tokenizer.json cuts
  EXPECT_EQ(read.prompts.at("query"), "a ");
  EXPECT_THAT(checkpoint->unused_tensors, IsEmpty());
  EXPECT_THAT(checkpoint->warnings, IsEmpty());
}

TEST_F(SparseStaticEmbeddingTest, RefusesWhatItDoesNotHave) {
  folder_.Write(absl::StrCat(kModule, "config.json"), R"({"path": "some/idf.json"})");
  EXPECT_THAT(Refusal(options_), HasSubstr("config.json: path: not supported: expected the weights "
                                           "in model.safetensors; got 'some/idf.json'"));
  folder_.Write(absl::StrCat(kModule, "config.json"), "{}");
  WriteTensors({MakeTensor("weight", {3, 2})}, kModule);
  EXPECT_THAT(Refusal(options_), HasSubstr("tensor 'weight' F32 [3, 2]"));
  WriteTensors({MakeTensor("embedding.weight", {3, 2})}, kModule);
  EXPECT_THAT(Refusal(options_), HasSubstr("weight"));
  options_.pooling = PoolingChoice::kMean;
  EXPECT_THAT(Refusal(options_), HasSubstr("pooling: not supported"));
}

TEST_F(SparseStaticEmbeddingTest, IsAlone) {
  options_.route.clear();
  folder_.Write("modules.json", R"([
      {"path": "", "type": "sentence_transformers.sparse_encoder.modules.SparseStaticEmbedding"},
      {"path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  EXPECT_THAT(Refusal(options_),
              HasSubstr("SparseStaticEmbedding: cannot be combined with other modules"));
}

}  // namespace static_embedding_test
}  // namespace attendant
