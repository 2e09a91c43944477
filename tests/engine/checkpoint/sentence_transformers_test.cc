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
  const PoolingDescription expected = {.modes = {PoolingMode::kMean},
                                       .dense_width = 3,
                                       .dense_activation = Activation::kTanh,
                                       .normalize = true};
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

TEST_F(SentenceTransformers, TakesTheLibrarysDefaults) {
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode_mean_tokens": false})");
  folder_.Write("2_Dense/config.json", R"({"in_features": 4, "out_features": 3})");
  EXPECT_THAT(Pooling().modes, ElementsAre(PoolingMode::kMean));
  EXPECT_EQ(Pooling().dense_activation, Activation::kTanh);
}

// As in the library: nothing is left out at inference, and nothing uses the width.
TEST_F(SentenceTransformers, IgnoresDropoutAndTheWidthOfPooling) {
  folder_.Write("1_Pooling/config.json", R"({"word_embedding_dimension": 5})");
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling"),
                Module("Dropout", "2_Dropout"), Module("Normalize", "3_Normalize")});
  EXPECT_EQ(Pooling(), (PoolingDescription{.modes = {PoolingMode::kMean}, .normalize = true}));
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

TEST_F(SentenceTransformers, RefusesADenseThatIsSomethingElse) {
  WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense")});
  const auto write = [&](const std::string& keys) {
    folder_.Write("2_Dense/config.json",
                  absl::StrCat(R"({"in_features": 4, "out_features": 3, "activation_function":
                                   "torch.nn.modules.activation.Tanh", )",
                               keys, "}"));
  };
  write(R"("module_output_name": "sentence_embedding")");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("2_Dense/config.json: module_output_name: expected "
                                         "'token_embeddings'; got 'sentence_embedding'")));
  write(R"("module_input_name": "pixels")");
  EXPECT_THAT(Refusal(),
              HasSubstr("2_Dense/config.json: module_input_name: expected 'sentence_embedding' or "
                        "'token_embeddings'; got 'pixels'"));
  write(R"("module_input_name": "sentence_embedding")");
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("Dense in "), HasSubstr("2_Dense': expected after a Pooling")));
  write(R"("use_residual": 1)");
  EXPECT_THAT(Refusal(),
              HasSubstr("2_Dense/config.json: use_residual: expected true or false; got 1"));
}

// What the layers take is added to what they make, by a second matrix where the widths differ.
TEST_F(SentenceTransformers, DenseLayersMayHaveResiduals) {
  const auto write = [&](const std::string& name, const char* widths) {
    folder_.Write(absl::StrCat(name, "/config.json"),
                  absl::StrCat(R"({"bias": false, "use_residual": true, "activation_function":
                                   "torch.nn.modules.linear.Identity", )",
                               widths, "}"));
  };
  write("2_Dense", R"("in_features": 4, "out_features": 3)");
  folder_.Write("2_Dense/model.safetensors",
                MakeSafetensors(
                    {MakeTensor("linear.weight", {3, 4}), MakeTensor("residual.weight", {3, 4})}));
  write("3_Dense", R"("in_features": 3, "out_features": 3)");
  folder_.Write("3_Dense/model.safetensors",
                MakeSafetensors({MakeTensor("linear.weight", {3, 3})}));
  WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense"), Module("Dense", "3_Dense")});
  absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.token_head,
            (PoolingDescription{.modes = {},
                                .dense_width = 3,
                                .dense_residual = Residual::kProjection,
                                .further_dense = {{3, Activation::kIdentity, Residual::kInput}}}));
  EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.residual.weight"),
            TestValues("residual.weight", 12));
  folder_.Write("2_Dense/model.safetensors",
                MakeSafetensors({MakeTensor("linear.weight", {3, 4})}));
  EXPECT_THAT(Refusal(), HasSubstr("residual.weight"));
}

// A vector of the sequence, and one of each token.
TEST_F(SentenceTransformers, ADenseLayerBehindPoolingMayBeOfTokens) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 4, "out_features": 3, "bias": true,
                    "module_input_name": "token_embeddings",
                    "activation_function": "torch.nn.modules.activation.Tanh"})");
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kMean}, .normalize = true}));
  EXPECT_EQ(
      checkpoint->description.token_head,
      (PoolingDescription{.modes = {}, .dense_width = 3, .dense_activation = Activation::kTanh}));
}

TEST_F(SentenceTransformers, ReadsSeveralDenseLayers) {
  for (const auto& [name, in, out] : {std::tuple{"3_Dense", 3, 5}, {"4_Dense", 5, 2}}) {
    folder_.Write(absl::StrCat(name, "/config.json"),
                  absl::StrCat(R"({"bias": false, "activation_function":
                                   "torch.nn.modules.activation.ReLU", "in_features": )",
                               in, ", \"out_features\": ", out, "}"));
    folder_.Write(absl::StrCat(name, "/model.safetensors"),
                  MakeSafetensors({MakeTensor("linear.weight", {out, in})}));
  }
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling"),
                Module("Dense", "2_Dense"), Module("Dense", "3_Dense"), Module("Dense", "4_Dense"),
                Module("Normalize", "5_Normalize")});
  absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(
      checkpoint->description.pooling,
      (PoolingDescription{.modes = {PoolingMode::kMean},
                          .dense_width = 3,
                          .dense_activation = Activation::kTanh,
                          .normalize = true,
                          .further_dense = {{5, Activation::kRelu}, {2, Activation::kRelu}}}));
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.dense.weight"), TestValues("linear.weight", 12));
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.further.0.weight"), TestValues("linear.weight", 15));
  EXPECT_EQ(ReadTensor(*checkpoint, "pooling.further.1.weight"), TestValues("linear.weight", 10));
  EXPECT_FALSE(checkpoint->weights->Has("pooling.further.0.bias"));
  folder_.Write("4_Dense/config.json", R"({"in_features": 3, "out_features": 2})");
  EXPECT_THAT(Refusal(),
              HasSubstr("4_Dense/config.json: in_features: expected an integer in 5..5; got 3"));
}

TEST_F(SentenceTransformers, ReadsWhetherPromptsArePooled) {
  EXPECT_FALSE(Pooling().excludes_prompt);
  for (const auto& [value, excludes] : {std::pair{"true", false}, {"false", true}}) {
    folder_.Write("1_Pooling/config.json",
                  absl::StrCat(R"({"embedding_dimension": 4, "pooling_mode": "mean",
                                   "include_prompt": )",
                               value, "}"));
    EXPECT_EQ(Pooling().excludes_prompt, excludes);
  }
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": "mean", "include_prompt": 0})");
  EXPECT_THAT(Refusal(), HasSubstr("include_prompt: expected true or false; got 0"));
}

// As MultiVectorEncoder of sentence-transformers 6 saves it.
class MultiVector : public SentenceTransformers {
 protected:
  MultiVector() {
    WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense"),
                  Module("MultiVectorMask", "3_Mask"), Module("Normalize", "4_Normalize")});
    folder_.Write("4_Normalize/config.json", R"({"module_input_name": "token_embeddings",
                                                 "module_output_name": "token_embeddings"})");
    folder_.Write("tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "[UNK]"}, {"id": 7, "content": "!"}],
      "model": {"type": "WordPiece",
                "vocab": {"[UNK]": 0, "a": 1, ",": 9, "!": 3, ".": 2, "[MASK]": 4}}})");
    folder_.Write("tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"})");
  }

  void WriteMask(const std::string& config) { folder_.Write("3_Mask/config.json", config); }

  Checkpoint OpenWith(const std::string& mask) {
    WriteMask(mask);
    absl::StatusOr<Checkpoint> checkpoint = Open();
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
  }
};

TEST_F(MultiVector, IsAHeadOfTokensThatLeavesSomeOut) {
  const Checkpoint checkpoint =
      OpenWith(R"({"skiplist_words": [",", "!", "."], "skiplist_tasks": ["query", "document"]})");
  EXPECT_EQ(checkpoint.description.token_head,
            (PoolingDescription{.modes = {},
                                .dense_width = 3,
                                .dense_activation = Activation::kTanh,
                                .normalize = true}));
  EXPECT_FALSE(checkpoint.description.pooling.has_value());
  // An added token comes before the word of the vocabulary.
  EXPECT_THAT(checkpoint.tokenization.selection.skipped_ids, ElementsAre(2, 7, 9));
  EXPECT_TRUE(checkpoint.tokenization.selection.Skips("query"));
  EXPECT_TRUE(checkpoint.tokenization.selection.Skips(""));
  EXPECT_FALSE(checkpoint.tokenization.selection.Skips("other"));
  EXPECT_THAT(checkpoint.warnings, IsEmpty());
}

TEST_F(MultiVector, SkipsOnlyInDocumentsByDefault) {
  const TokenSelection selection = OpenWith(R"({"skiplist_words": ["."],
      "skiplist_tasks": null, "keep_only_token_ids": [4, 1]})")
                                       .tokenization.selection;
  EXPECT_THAT(selection.skip_tasks, ElementsAre("document"));
  EXPECT_THAT(selection.only_ids, ElementsAre(1, 4));
  EXPECT_THAT(OpenWith(R"({"skiplist_words": ["."], "skiplist_tasks": "query"})")
                  .tokenization.selection.skip_tasks,
              ElementsAre("query"));
  EXPECT_THAT(OpenWith("{}").tokenization.selection.skip_tasks, IsEmpty());
  std::filesystem::remove_all(folder_.File("3_Mask"));
  EXPECT_TRUE(Open().ok());
}

TEST_F(MultiVector, WordsThatAreNoTokensAreLeftOutWithAWarning) {
  const Checkpoint checkpoint = OpenWith(R"({"skiplist_words": ["?", "[UNK]", "no token"]})");
  EXPECT_THAT(checkpoint.tokenization.selection.skipped_ids, ElementsAre(0));
  EXPECT_THAT(checkpoint.warnings,
              ElementsAre(HasSubstr("3_Mask/config.json: skiplist_words that are not tokens of the "
                                    "tokenizer are not skipped: '?', 'no token'")));
}

TEST_F(MultiVector, FindsWordsInAListOfPieces) {
  folder_.Write("tokenizer.json",
                R"({"model": {"type": "Unigram", "vocab": [["<s>", 0], ["!", -2.5], [".", -3]]}})");
  EXPECT_THAT(OpenWith(R"({"skiplist_words": [".", "!"]})").tokenization.selection.skipped_ids,
              ElementsAre(1, 2));
}

TEST_F(MultiVector, NeedsNoDense) {
  WriteModules({Module("Transformer", ""), Module("MultiVectorMask", "3_Mask")});
  EXPECT_EQ(OpenWith("{}").description.token_head, PoolingDescription());
  WriteModules({Module("Transformer", ""), Module("Normalize", "4_Normalize")});
  EXPECT_EQ(OpenWith("{}").description.token_head,
            (PoolingDescription{.modes = {}, .normalize = true}));
}

TEST_F(MultiVector, RefusesABadMask) {
  WriteMask(R"({"skiplist_words": [3], "skiplist_tasks": {}, "keep_only_token_ids": [-1]})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("3_Mask/config.json: 3 problems: "),
                               HasSubstr("skiplist_words: expected strings; got 3"),
                               HasSubstr("skiplist_tasks: expected strings; got an object"),
                               HasSubstr("keep_only_token_ids: expected a list of up to")));
  WriteModules({Module("Transformer", ""), Module("MultiVectorMask", "3_Mask"),
                Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("modules.json: Pooling in "),
                               HasSubstr("1_Pooling': expected before modules for token vectors")));
}

// A ColBERT of PyLate, which has its mask and its normalisation in code. The library's own values
// are in client/python/tests/sentence_values.json.
class Pylate : public MultiVector {
 protected:
  Pylate() {
    folder_.Write("modules.json",
                  absl::StrCat("[", Module("Transformer", ""),
                               R"(,{"path":"2_Dense","type":"pylate.models.Dense.Dense"}])"));
  }

  Checkpoint OpenWith(const std::string& config) {
    folder_.Write("config_sentence_transformers.json", config);
    absl::StatusOr<Checkpoint> checkpoint = Open();
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
  }
};

TEST_F(Pylate, SkipsItsWordsInDocumentsAndNormalizes) {
  const Checkpoint checkpoint = OpenWith(
      R"({"model_type": "ColBERT", "skiplist_words": ["a", "."], "do_query_expansion": false})");
  EXPECT_TRUE(checkpoint.description.token_head->normalize);
  EXPECT_EQ(checkpoint.description.token_head->dense_width, 3);
  EXPECT_THAT(checkpoint.tokenization.selection.skipped_ids, ElementsAre(1, 2));
  EXPECT_THAT(checkpoint.tokenization.selection.skip_tasks, ElementsAre("document"));
  EXPECT_THAT(checkpoint.warnings, IsEmpty());
  EXPECT_THAT(OpenWith(R"({"model_type": "ColBERT", "skiplist_words": [], "query_length": 6})")
                  .tokenization.selection.skip_tasks,
              IsEmpty());
}

TEST_F(Pylate, SkipsPunctuationUnlessItsFileSaysOtherwise) {
  for (const char* config :
       {R"({"model_type": "ColBERT", "skiplist_words": null, "query_length": 6})",
        R"({"query_prefix": "[Q] ", "query_length": 6})",
        R"({"document_prefix": "[D] ", "query_length": 6})",
        R"({"model_type": "ColBERT", "query_length": 6, "mask_punctuation": false})"}) {
    const Checkpoint checkpoint = OpenWith(config);
    EXPECT_THAT(checkpoint.tokenization.selection.skipped_ids, ElementsAre(2, 7, 9));
    EXPECT_THAT(checkpoint.warnings,
                ElementsAre(AllOf(HasSubstr("skiplist_words that are not tokens of the tokenizer "
                                            "are not skipped: "),
                                  HasSubstr("'#', '$', '%'"))));
  }
}

TEST_F(Pylate, IsNoOtherModel) {
  for (const char* config : {R"({"model_type": "SentenceTransformer", "query_prefix": "[Q] "})",
                             R"({"skiplist_words": ["."]})"}) {
    const Checkpoint checkpoint = OpenWith(config);
    EXPECT_FALSE(checkpoint.description.token_head->normalize);
    EXPECT_THAT(checkpoint.tokenization.selection.skipped_ids, IsEmpty());
    EXPECT_THAT(checkpoint.tokenization.prompts, IsEmpty());
  }
}

TEST_F(Pylate, RefusesBadSettings) {
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type": "ColBERT", "skiplist_words": 3, "query_length": 6})");
  EXPECT_THAT(Refusal(), HasSubstr("skiplist_words: expected strings; got 3"));
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type": "ColBERT", "do_query_expansion": 1, "query_length": 0})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("do_query_expansion: expected true or false; got 1"),
                               HasSubstr("query_length: expected an integer in 1")));
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type": "ColBERT", "query_prefix": 3, "document_length": 0})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("query_prefix"), HasSubstr("document_length")));
}

TEST_F(SentenceTransformers, ReadsADenseLayerWithoutBias) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 4, "out_features": 3, "bias": false,
                    "activation_function": "torch.nn.modules.linear.Identity"})");
  EXPECT_THAT(Refusal(), HasSubstr("2_Dense/model.safetensors: tensor 'linear.bias' F32 [3]: "
                                   "unexpected in this"));
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
              AllOf(HasSubstr("modules.json: type: expected Transformer, StaticEmbedding, "
                              "SparseStaticEmbedding, Pooling, Dense, Normalize, Dropout, "
                              "MultiVectorMask, SpladePooling or LogitScore of "
                              "sentence_transformers; got"),
                    HasSubstr("'sentence_transformers.models.LSTM'")));
  folder_.Write("modules.json", R"([{"path": "", "type": "custom_st.Transformer"}])");
  EXPECT_THAT(Refusal(), HasSubstr("got 'custom_st.Transformer'"));
}

TEST_F(SentenceTransformers, RefusesModulesInAnotherOrder) {
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling"), Module("Normalize", ""),
                Module("Dense", "2_Dense")});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("modules.json: Dense in "),
                               HasSubstr("2_Dense': expected before Normalize")));
  WriteModules(
      {Module("Transformer", ""), Module("Pooling", "1_Pooling"), Module("Pooling", "1_Pooling")});
  EXPECT_THAT(Refusal(), HasSubstr("1_Pooling': expected only once"));
  WriteModules({Module("Pooling", "1_Pooling"), Module("Transformer", "")});
  EXPECT_THAT(Refusal(), HasSubstr("1_Pooling': expected after a Transformer"));
  WriteModules({Module("Normalize", "")});
  EXPECT_THAT(Refusal(), HasSubstr("no Transformer module"));
}

TEST_F(SentenceTransformers, TakesARouteOfARouter) {
  WriteModules({Module("Router", "0_Router"), Module("Normalize", "3_Normalize")});
  for (const char* name : {"config.json", "model.safetensors"}) {
    const std::string copy = absl::StrCat("0_Router/query_0_Transformer/", name);
    folder_.Write(copy, "");
    std::filesystem::copy_file(folder_.File(name), folder_.File(copy),
                               std::filesystem::copy_options::overwrite_existing);
  }
  folder_.Write("0_Router/query_1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode": "max"})");
  const auto config = [&](const std::string& by_default) {
    folder_.Write("0_Router/router_config.json", absl::StrCat(R"({"types": {
        "query_0_Transformer": "sentence_transformers.base.modules.transformer.Transformer",
        "query_1_Pooling": "sentence_transformers.models.Pooling"},
      "structure": {"query": ["query_0_Transformer", "query_1_Pooling"], "document": []},
      "parameters": {"default_route": )",
                                                              by_default, "}}"));
  };
  config("\"query\"");
  const PoolingDescription expected = {.modes = {PoolingMode::kMax}, .normalize = true};
  EXPECT_EQ(Pooling(), expected);
  config("null");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("route: missing; expected one of document, query ("),
                               HasSubstr("/router_config.json)")));
  CheckpointOptions options;
  options.route = "query";
  const absl::StatusOr<Checkpoint> named = OpenCheckpoint(folder_.path(), options);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->description.pooling, expected);
  std::filesystem::rename(folder_.File("0_Router/router_config.json"),
                          folder_.File("0_Router/config.json"));
  WriteModules({Module("Asym", "0_Router"), Module("Normalize", "3_Normalize")});
  const absl::StatusOr<Checkpoint> older = OpenCheckpoint(folder_.path(), options);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->description.pooling, expected);
  config(R"x("query", "route_mappings": {"(None, 'text')": "document"})x");
  EXPECT_THAT(Refusal(), HasSubstr("router_config.json: route_mappings: not supported; name a "
                                   "route, route=NAME"));
  EXPECT_TRUE(OpenCheckpoint(folder_.path(), options).ok());
  options.route = "document";
  EXPECT_THAT(std::string(OpenCheckpoint(folder_.path(), options).status().message()),
              HasSubstr("no Transformer module"));
  WriteModules({Module("Transformer", ""), Module("Pooling", "1_Pooling")});
  EXPECT_THAT(std::string(OpenCheckpoint(folder_.path(), options).status().message()),
              HasSubstr("route: not supported (modules.json has no Router); got 'document'"));
}

// The library's module finds no vector of the sequence, and does nothing.
TEST_F(SentenceTransformers, NormalizeWithoutPoolingDoesNothing) {
  WriteModules({Module("Transformer", ""), Module("Dense", "2_Dense"), Module("Normalize", "")});
  const absl::StatusOr<Checkpoint> checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.pooling.has_value());
  EXPECT_FALSE(checkpoint->description.token_head->normalize);
}

TEST_F(SentenceTransformers, RefusesBadLists) {
  folder_.Write("modules.json", "{}");
  EXPECT_THAT(Refusal(), HasSubstr("modules.json: expected a list of at most 16 modules"));
  WriteModules({Module("Transformer", "../elsewhere")});
  EXPECT_THAT(
      Refusal(),
      HasSubstr("path: expected the plain name of a directory in this one; got '../elsewhere'"));
  folder_.Write("modules.json", "[5]");
  EXPECT_THAT(Refusal(), HasSubstr("expected an object; got 5"));
  WriteModules({Module("Transformer", ""), Module("Unknown", "")});
  folder_.Write("sentence_bert_config.json", "{");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("modules.json: 2 problems: "),
                               HasSubstr("sentence_bert_config.json: "),
                               HasSubstr("type: expected Transformer, ")));
}

TEST_F(SentenceTransformers, RefusesBadPooling) {
  folder_.Write("1_Pooling/config.json", R"({"word_embedding_dimension": "4"})");
  EXPECT_THAT(Refusal(),
              HasSubstr("1_Pooling/config.json: word_embedding_dimension or embedding_dimension: "
                        "expected an integer in 1..65536; got '4'"));
  folder_.Write("1_Pooling/config.json", R"({"embedding_dimension": 4, "pooling_mode": []})");
  EXPECT_THAT(Refusal(), HasSubstr("expected 1..6 pooling modes; got 0"));
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 4, "pooling_mode_mean_tokens": "true"})");
  EXPECT_THAT(Refusal(), HasSubstr("pooling_mode_mean_tokens: expected true or false"));
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": ["mean", "median", 5]})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("2 problems: pooling_mode: expected cls, max, mean,"),
                               HasSubstr("got 'median'"), HasSubstr("got 5")));
  folder_.Write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": [
                    "max", "max", "max", "max", "max", "max", "max"]})");
  EXPECT_THAT(Refusal(), HasSubstr("expected 1..6 pooling modes; got 7"));
}

TEST_F(SentenceTransformers, RefusesBadDense) {
  folder_.Write("2_Dense/config.json",
                R"({"in_features": 5, "out_features": 0, "bias": true,
                    "activation_function": "torch.nn.modules.activation.Hardswish"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("2_Dense/config.json: 3 problems: "),
                               HasSubstr("in_features: expected an integer in 4..4; got 5"),
                               HasSubstr("out_features: expected an integer in 1..65536; got 0"),
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
                    HasSubstr("linear.bias': missing; expected [3]"),
                    HasSubstr("tensor 'x' F32 [1]: unexpected in this"),
                    HasSubstr("'encoder.layer.1.output.LayerNorm.weight'")));
}

}  // namespace sentence_transformers_test
}  // namespace attendant
