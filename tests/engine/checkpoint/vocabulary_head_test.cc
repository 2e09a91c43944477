// Tests of the heads of masked language models, and of what SpladePooling makes of their logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace vocabulary_head_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kWords = 10;

struct Head {
  std::string family;  // "bert", which gets another model_type, or a tiny family
  std::string architecture;
  std::string prefix;  // of the encoder's tensors in the file
  std::string dense;   // names in the file
  std::string norm;
  std::string output;
  std::string output_bias;
  std::string words = "embeddings.word_embeddings.weight";  // without the prefix
  Activation activation = Activation::kGelu;
  int64_t width = 4;
  bool has_biases = true;
  std::string label = "";  // of the test, if not the family
};

struct Files {
  std::string config;
  std::vector<TestTensor> tensors;
  std::string words;  // name of the table
};

// DistilBERT, which has the layers of BERT, with names of its own.
Files LikeDistilBert(Files files) {
  files.config = absl::StrReplaceAll(
      files.config, {{"intermediate_size", "hidden_dim"}, {"hidden_act", "activation"}});
  std::erase_if(files.tensors, [](const TestTensor& tensor) {
    return absl::StrContains(tensor.name, "token_type");
  });
  for (TestTensor& tensor : files.tensors) {
    tensor = MakeTensor(
        absl::StrReplaceAll(tensor.name, {{"encoder.layer.", "transformer.layer."},
                                          {"attention.self.query", "attention.q_lin"},
                                          {"attention.self.key", "attention.k_lin"},
                                          {"attention.self.value", "attention.v_lin"},
                                          {"attention.output.dense", "attention.out_lin"},
                                          {"attention.output.LayerNorm", "sa_layer_norm"},
                                          {"intermediate.dense", "ffn.lin1"},
                                          {"output.dense", "ffn.lin2"},
                                          {"output.LayerNorm", "output_layer_norm"}}),
        tensor.shape);
  }
  return files;
}

// The families that have the tensors of BERT.
Files MakeLikeBert(const Head& head) {
  Files files = {absl::StrReplaceAll(TinyBertConfig(),
                                     {{"\"model_type\": \"bert\"",
                                       absl::StrCat("\"model_type\": \"", head.family, "\"")},
                                      {"\"architectures\": [\"BertModel\"], ", ""},
                                      {"_embeddings\": 6", "_embeddings\": 9"}}),
                 TinyBertTensors(head.prefix), head.prefix + head.words};
  for (TestTensor& tensor : files.tensors) {
    if (!absl::StrContains(tensor.name, "position_embeddings")) continue;
    tensor = MakeTensor(tensor.name, {9, 4});
  }
  return head.family == "distilbert" ? LikeDistilBert(std::move(files)) : files;
}

// Puts the prefix before the encoder's names, as files with a head have it.
Files MakeTiny(const Head& head, const TinyFamily& tiny) {
  Files files = {tiny.config, TensorsOf(tiny), head.words};
  const auto has_prefix = [&](const TestTensor& tensor) {
    return absl::StartsWith(tensor.name, head.prefix);
  };
  if (std::none_of(files.tensors.begin(), files.tensors.end(), has_prefix)) {
    for (TestTensor& tensor : files.tensors)
      tensor = MakeTensor(head.prefix + tensor.name, tensor.shape);
  }
  files.words = head.prefix + head.words;
  return files;
}

// A checkpoint whose decoder is the table of words, which is in the file only once.
Files Make(const Head& head) {
  Files files;
  for (const TinyFamily& tiny : TinyFamilies()) {
    if (tiny.name == head.family) files = MakeTiny(head, tiny);
  }
  if (files.tensors.empty()) files = MakeLikeBert(head);
  files.config.insert(1, absl::StrCat("\"architectures\": [\"", head.architecture, "\"], "));
  const int64_t hidden_size = absl::StrContains(files.config, "\"hidden_size\": 8") ? 8 : 4;
  files.tensors.push_back(MakeTensor(head.dense + ".weight", {head.width, hidden_size}));
  files.tensors.push_back(MakeTensor(head.norm + ".weight", {head.width}));
  if (head.has_biases) {
    files.tensors.push_back(MakeTensor(head.dense + ".bias", {head.width}));
    files.tensors.push_back(MakeTensor(head.norm + ".bias", {head.width}));
  }
  std::erase_if(files.tensors,
                [&](const TestTensor& tensor) { return tensor.name == head.output_bias; });
  files.tensors.push_back(MakeTensor(head.output_bias, {kWords}));
  return files;
}

absl::StatusOr<Checkpoint> Open(const Files& files, const TempFolder& folder = TempFolder()) {
  folder.Write("config.json", files.config);
  folder.Write("model.safetensors", MakeSafetensors(files.tensors));
  return OpenCheckpoint(folder.path(), {});
}

class VocabularyHeadFilesTest : public ::testing::TestWithParam<Head> {};

TEST_P(VocabularyHeadFilesTest, AreReadWithTheTableOfWordsAsTheDecoder) {
  const Head& head = GetParam();
  const Files files = Make(head);
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(files, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.vocabulary_head,
            (VocabularyHeadShape{.width = head.width, .activation = head.activation}));
  EXPECT_EQ(checkpoint->description.sparse_width(), kWords);
  const auto expect = [&](const std::string& part, const std::string& name) {
    const std::vector<float> values = ReadTensor(*checkpoint, "vocabulary_head." + part);
    EXPECT_EQ(values, TestValues(name, static_cast<int64_t>(values.size()))) << part;
  };
  expect("dense.weight", head.dense + ".weight");
  expect("dense_norm.weight", head.norm + ".weight");
  expect("output.weight", files.words);
  expect("output.bias", head.output_bias);
  EXPECT_EQ(checkpoint->weights->Has("vocabulary_head.dense.bias"), head.has_biases);
  if (!head.has_biases) return;
  expect("dense.bias", head.dense + ".bias");
  expect("dense_norm.bias", head.norm + ".bias");
}

TEST_P(VocabularyHeadFilesTest, MayHaveADecoderOfTheirOwn) {
  const Head& head = GetParam();
  Files files = Make(head);
  files.tensors.push_back(MakeTensor(head.output + ".weight", {kWords, head.width}));
  if (head.output + ".bias" != head.output_bias) {
    files.tensors.push_back(MakeTensor(head.output + ".bias", {kWords}));
  }
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(files, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ReadTensor(*checkpoint, "vocabulary_head.output.weight"),
            TestValues(head.output + ".weight", kWords * head.width));
  EXPECT_EQ(ReadTensor(*checkpoint, "vocabulary_head.output.bias"),
            TestValues(head.output + ".bias", kWords));
}

TEST_P(VocabularyHeadFilesTest, HaveNoHeadInPart) {
  const Head& head = GetParam();
  for (const std::string& missing : {head.dense, head.norm}) {
    Files files = Make(head);
    std::erase_if(files.tensors, [&](const TestTensor& tensor) {
      return absl::StartsWith(tensor.name, missing + ".");
    });
    const absl::StatusOr<Checkpoint> checkpoint = Open(files);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->description.vocabulary_head.has_value()) << missing;
    EXPECT_EQ(checkpoint->description.sparse_width(), 0);
    EXPECT_THAT(checkpoint->unused_tensors, Contains(head.output_bias));
  }
}

TEST_P(VocabularyHeadFilesTest, AreOfMaskedLanguageModelsAlone) {
  const Head& head = GetParam();
  Files files = Make(head);
  files.config = absl::StrReplaceAll(files.config, {{"ForMaskedLM", "Model"}});
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.vocabulary_head.has_value());
}

Head LikeBert(const std::string& family, const std::string& architecture) {
  return {.family = family,
          .architecture = architecture,
          .prefix = "bert.",
          .dense = "cls.predictions.transform.dense",
          .norm = "cls.predictions.transform.LayerNorm",
          .output = "cls.predictions.decoder",
          .output_bias = "cls.predictions.bias"};
}

Head LikeRoberta(const std::string& family, const std::string& architecture,
                 const std::string& prefix) {
  return {.family = family,
          .architecture = architecture,
          .prefix = prefix,
          .dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .output = "lm_head.decoder",
          .output_bias = "lm_head.bias"};
}

std::vector<Head> Heads() {
  std::vector<Head> heads = {
      LikeBert("bert", "BertForMaskedLM"),
      LikeBert("big_bird", "BigBirdForMaskedLM"),
      LikeBert("deberta", "DebertaV2ForMaskedLM"),
      LikeRoberta("roberta", "RobertaForMaskedLM", "roberta."),
      LikeRoberta("xlm-roberta", "XLMRobertaForMaskedLM", "roberta."),
      LikeRoberta("camembert", "CamembertForMaskedLM", "roberta."),
      LikeRoberta("mpnet", "MPNetForMaskedLM", "mpnet."),
      {"electra", "ElectraForMaskedLM", "electra.", "generator_predictions.dense",
       "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias"},
      {"distilbert", "DistilBertForMaskedLM", "distilbert.", "vocab_transform", "vocab_layer_norm",
       "vocab_projector", "vocab_projector.bias"},
      {"albert", "AlbertForMaskedLM", "albert.", "predictions.dense", "predictions.LayerNorm",
       "predictions.decoder", "predictions.bias"},
      {"deberta", "DebertaV2ForMaskedLM", "deberta.", "lm_predictions.lm_head.dense",
       "lm_predictions.lm_head.LayerNorm", "cls.predictions.decoder",
       "lm_predictions.lm_head.bias"},
      {"modernbert", "ModernBertForMaskedLM", "model.", "head.dense", "head.norm", "decoder",
       "decoder.bias", "embeddings.tok_embeddings.weight"},
      LikeBert("roformer", "RoFormerForMaskedLM"),
      LikeBert("ernie", "ErnieForMaskedLM"),
      LikeRoberta("data2vec_text", "Data2VecTextForMaskedLM", "data2vec_text."),
      LikeRoberta("esm", "EsmForMaskedLM", "esm."),
  };
  for (Head& head : heads) {
    if (head.family != "bert" && head.family != "roberta" && head.family != "electra" &&
        head.family != "distilbert" && head.family != "xlm-roberta" && head.family != "camembert") {
      head.width = 8;
    }
    if (head.family == "albert" || head.family == "roformer") head.width = 6;
    if (head.family == "albert" || head.family == "big_bird") {
      head.activation = Activation::kGeluTanh;
    }
    if (head.family == "deberta") head.prefix = "deberta.";
    if (head.family == "roformer" || head.family == "ernie") head.prefix = head.family + ".";
    head.has_biases = head.family != "modernbert";
    head.label = absl::StrReplaceAll(head.family, {{"-", "_"}});
    if (absl::StartsWith(head.dense, "lm_predictions")) head.label = "deberta_new";
  }
  return heads;
}

INSTANTIATE_TEST_SUITE_P(Families, VocabularyHeadFilesTest, ::testing::ValuesIn(Heads()),
                         [](const auto& tested) { return tested.param.label; });

TEST(VocabularyHeadTest, MayHaveTheNamesOfTensorFlow) {
  Files files = Make(LikeBert("bert", "BertForMaskedLM"));
  for (TestTensor& tensor : files.tensors) {
    tensor.name = absl::StrReplaceAll(tensor.name,
                                      {{"transform.LayerNorm.weight", "transform.LayerNorm.gamma"},
                                       {"transform.LayerNorm.bias", "transform.LayerNorm.beta"}});
  }
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->description.vocabulary_head.has_value());
}

TEST(VocabularyHeadTest, TheBiasMayBeTheDecoders) {
  Files files = Make(LikeBert("bert", "BertForMaskedLM"));
  files.tensors.back() = MakeTensor("cls.predictions.decoder.bias", {kWords});
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(files, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ReadTensor(*checkpoint, "vocabulary_head.output.bias"),
            TestValues("cls.predictions.decoder.bias", kWords));
}

TEST(VocabularyHeadTest, RefusesABiasOfTheWrongShape) {
  Files files = Make(LikeBert("bert", "BertForMaskedLM"));
  files.tensors.back() = MakeTensor("cls.predictions.bias", {kWords + 1});
  const absl::Status status = Open(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("tensor 'cls.predictions.bias' F32 [11]: expected F32, F16, BF16 or F64 "
                        "[10]"));
}

// A tiny BERT with modules.
class SpladePoolingTest : public ::testing::Test {
 protected:
  SpladePoolingTest() { WriteModules("sentence_transformers.models.MLMTransformer"); }

  void WriteModules(const std::string& transformer) {
    folder_.Write("modules.json", absl::StrCat(R"([{"path": "", "type": ")", transformer,
                                               R"("}, {"path": "1_SpladePooling",
                  "type": "sentence_transformers.sparse_encoder.models.SpladePooling"}])"));
  }

  absl::StatusOr<Checkpoint> Open(const std::string& pooling,
                                  const Files& files = Make(LikeBert("bert", "BertForMaskedLM"))) {
    folder_.Write("1_SpladePooling/config.json", pooling);
    return vocabulary_head_test::Open(files, folder_);
  }

  VocabularyHeadShape Head(const std::string& pooling) {
    const absl::StatusOr<Checkpoint> checkpoint = Open(pooling);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) return {};
    EXPECT_FALSE(checkpoint->description.pooling.has_value());
    return checkpoint->description.vocabulary_head.value_or(VocabularyHeadShape());
  }

  std::string Refusal(const std::string& pooling,
                      const Files& files = Make(LikeBert("bert", "BertForMaskedLM"))) {
    const absl::Status status = Open(pooling, files).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(SpladePoolingTest, SaysWhatBecomesOfTheLogits) {
  EXPECT_EQ(Head("{}"), (VocabularyHeadShape{.width = 4}));
  EXPECT_EQ(Head(R"({"pooling_strategy": "max", "activation_function": "relu",
                     "word_embedding_dimension": 10})"),
            (VocabularyHeadShape{.width = 4}));
  EXPECT_EQ(Head(R"({"pooling_strategy": "sum", "activation_function": "log1p_relu",
                     "embedding_dimension": null})"),
            (VocabularyHeadShape{.width = 4, .takes_sums = true, .has_two_logarithms = true}));
}

TEST_F(SpladePoolingTest, FollowsATransformerOfAnyName) {
  for (const char* transformer : {"sentence_transformers.models.Transformer",
                                  "sentence_transformers.sparse_encoder.models.MLMTransformer",
                                  "sentence_transformers.base.modules.transformer.Transformer"}) {
    WriteModules(transformer);
    EXPECT_EQ(Head("{}").width, 4) << transformer;
  }
}

// Of any architecture whose files hold the head.
TEST_F(SpladePoolingTest, TakesTheHeadOfAModelForPretraining) {
  const Files files = Make(LikeBert("bert", "BertForPreTraining"));
  const absl::StatusOr<Checkpoint> checkpoint = Open("{}", files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.vocabulary_head->width, 4);
}

TEST_F(SpladePoolingTest, RefusesWhatItDoesNotCompute) {
  EXPECT_THAT(Refusal(R"({"pooling_strategy": "mean", "activation_function": "gelu",
                          "embedding_dimension": 11})"),
              AllOf(HasSubstr("1_SpladePooling/config.json"),
                    HasSubstr("pooling_strategy: expected one of max, sum; got 'mean'"),
                    HasSubstr("activation_function: expected one of relu, log1p_relu; got 'gelu'"),
                    HasSubstr("embedding_dimension")));
  WriteModules(R"(sentence_transformers.models.Transformer"},
                  {"path": "2", "type": "sentence_transformers.models.Normalize)");
  EXPECT_THAT(Refusal("{}"),
              HasSubstr("SpladePooling: cannot be combined with modules other than a Transformer"));
}

TEST_F(SpladePoolingTest, NeedsAHead) {
  Files files = Make(LikeBert("bert", "BertForMaskedLM"));
  std::erase_if(files.tensors,
                [](const TestTensor& tensor) { return absl::StartsWith(tensor.name, "cls."); });
  EXPECT_THAT(
      Refusal("{}", files),
      HasSubstr("SpladePooling: requires an MLM head that is computed for the family bert"));
}

TEST(VocabularyHeadTest, IsLeftOutWhereModulesDoNotAskForIt) {
  const TempFolder folder;
  folder.Write("modules.json",
               R"([{"path": "", "type": "sentence_transformers.models.Transformer"}])");
  const absl::StatusOr<Checkpoint> checkpoint =
      Open(Make(LikeBert("bert", "BertForMaskedLM")), folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.vocabulary_head.has_value());
}

}  // namespace vocabulary_head_test
}  // namespace attendant
