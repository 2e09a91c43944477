// Tests of the heads with which checkpoints score classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace classifier_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Head {
  std::string family;        // "bert", which gets another model_type, or a tiny family
  std::string architecture;  // in config.json
  std::string dense;         // name in the file, with the family's prefix if it has one
  std::string output;        // or empty
  Activation activation;
  std::string prefix = "";
  std::vector<PoolingMode> modes = {PoolingMode::kFirstToken};
  std::string norm = "";  // the norm between them, or empty
};

// Writes a checkpoint with the tensors of the head.
struct Files {
  std::string config;
  std::vector<TestTensor> tensors;
  int64_t hidden_size = 0;
};

void AddLinear(const std::string& name, int64_t out, int64_t in, std::vector<TestTensor>& tensors) {
  const auto add = [&](TestTensor tensor) {
    const auto same = [&](const TestTensor& other) { return other.name == tensor.name; };
    if (std::none_of(tensors.begin(), tensors.end(), same)) tensors.push_back(std::move(tensor));
  };
  add(MakeTensor(name + ".weight", {out, in}));
  add(MakeTensor(name + ".bias", {out}));
}

Files Make(const Head& head, const std::string& architecture) {
  Files files;
  for (const TinyFamily& tiny : TinyFamilies()) {
    if (tiny.name == head.family) files = {tiny.config, TensorsOf(tiny), 8};
  }
  if (files.tensors.empty()) {
    files = {absl::StrReplaceAll(TinyBertConfig(),
                                 {{"\"model_type\": \"bert\"",
                                   absl::StrCat("\"model_type\": \"", head.family, "\"")},
                                  {"\"architectures\": [\"BertModel\"], ", ""},
                                  {"_embeddings\": 6", "_embeddings\": 9"}}),
             TinyBertTensors(head.prefix), 4};
    for (TestTensor& tensor : files.tensors) {
      if (tensor.name.find("position_embeddings") == std::string::npos) continue;
      tensor = MakeTensor(tensor.name, {9, 4});
    }
  }
  files.config.insert(1, absl::StrCat("\"architectures\": [\"", architecture, "\"], "));
  if (!head.output.empty()) {
    AddLinear(head.dense, files.hidden_size, files.hidden_size, files.tensors);
    AddLinear(head.output, 3, files.hidden_size, files.tensors);
    if (!head.norm.empty()) {
      files.tensors.push_back(MakeTensor(head.norm + ".weight", {files.hidden_size}));
    }
  } else {
    AddLinear(head.dense, 3, head.modes.size() * files.hidden_size, files.tensors);
  }
  return files;
}

absl::StatusOr<Checkpoint> Open(const Files& files, const TempFolder& folder = TempFolder()) {
  folder.Write("config.json", files.config);
  folder.Write("model.safetensors", MakeSafetensors(files.tensors));
  return OpenCheckpoint(folder.path(), {});
}

Files WithConfig(Files files, const std::string& more) {
  files.config.insert(1, more + ", ");
  return files;
}

class ClassifierTest : public ::testing::TestWithParam<Head> {};

TEST_P(ClassifierTest, IsReadFromTheFile) {
  const Head& head = GetParam();
  const Files files = Make(head, head.architecture);
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(files, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  PoolingDescription expected = {.modes = head.modes, .dense_width = 3};
  if (!head.output.empty()) {
    expected.dense_width = files.hidden_size;
    expected.dense_activation = head.activation;
    expected.has_dense_norm = !head.norm.empty();
    expected.output_width = 3;
  }
  EXPECT_EQ(checkpoint->description.classifier, expected);
  const auto values = [&](const std::string& name, int64_t count) {
    EXPECT_EQ(ReadTensor(*checkpoint, name.substr(0, name.find('='))),
              TestValues(name.substr(name.find('=') + 1), count));
  };
  const int64_t size = files.hidden_size, first = expected.dense_width;
  values(absl::StrCat("classifier.dense.weight=", head.dense, ".weight"),
         first * size * static_cast<int64_t>(head.modes.size()));
  values(absl::StrCat("classifier.dense.bias=", head.dense, ".bias"), first);
  if (head.output.empty()) return;
  values(absl::StrCat("classifier.output.weight=", head.output, ".weight"), 3 * size);
  values(absl::StrCat("classifier.output.bias=", head.output, ".bias"), 3);
}

TEST_P(ClassifierTest, IsOfSequencesAlone) {
  const Head& head = GetParam();
  for (const char* other : {"ForTokenClassification", "ForQuestionAnswering", "Model"}) {
    const std::string stem = head.architecture.substr(0, head.architecture.find("For"));
    const absl::StatusOr<Checkpoint> checkpoint = Open(Make(head, stem + other));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->description.classifier.has_value());
  }
}

TEST_P(ClassifierTest, IsNotThereInPart) {
  const Head& head = GetParam();
  Files files = Make(head, head.architecture);
  const std::string last = head.output.empty() ? head.dense : head.output;
  std::erase_if(files.tensors, [&](const TestTensor& tensor) {
    return tensor.name == last + ".weight" || tensor.name == last + ".bias";
  });
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.classifier.has_value());
  EXPECT_THAT(checkpoint->warnings,
              Contains(AllOf(HasSubstr(": no classification head: the files do not have all of its "
                                       "weights, "),
                             HasSubstr(absl::StrCat("'", last, ".weight'")))));
}

// A file may hold a matrix without columns, and with any number of rows, in no bytes.
TEST_P(ClassifierTest, HasColumns) {
  const Head& head = GetParam();
  Files files = Make(head, head.architecture);
  const std::string last = head.output.empty() ? head.dense : head.output;
  for (TestTensor& tensor : files.tensors) {
    if (tensor.name == last + ".weight") tensor = {tensor.name, {int64_t{1} << 40, 0}};
  }
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.classifier.has_value());
}

const Head kHeads[] = {
    {"bert", "BertForSequenceClassification", "bert.pooler.dense", "classifier", Activation::kTanh,
     "bert."},
    {"roberta", "RobertaForSequenceClassification", "classifier.dense", "classifier.out_proj",
     Activation::kTanh, "roberta."},
    {"jina_reranker", "XLMRobertaForSequenceClassification", "classifier.dense",
     "classifier.out_proj", Activation::kTanh},
    {"electra", "ElectraForSequenceClassification", "classifier.dense", "classifier.out_proj",
     Activation::kGelu, "electra."},
    {"roformer", "RoFormerForSequenceClassification", "classifier.dense", "classifier.out_proj",
     Activation::kGelu},
    {"data2vec_text", "Data2VecTextForSequenceClassification", "classifier.dense",
     "classifier.out_proj", Activation::kTanh},
    {"ernie", "ErnieForSequenceClassification", "ernie.pooler.dense", "classifier",
     Activation::kTanh},
    {"rembert", "RemBertForSequenceClassification", "pooler.dense", "classifier",
     Activation::kTanh},
    {"esm", "EsmForSequenceClassification", "classifier.dense", "classifier.out_proj",
     Activation::kTanh},
    {"albert", "AlbertForSequenceClassification", "pooler", "classifier", Activation::kTanh},
    {"mpnet", "MPNetForSequenceClassification", "classifier.dense", "classifier.out_proj",
     Activation::kTanh},
    {"modernbert",
     "ModernBertForSequenceClassification",
     "head.dense",
     "classifier",
     Activation::kGelu,
     "",
     {PoolingMode::kFirstToken},
     "head.norm"},
    {"wav2vec2",
     "Wav2Vec2ForSequenceClassification",
     "projector",
     "classifier",
     Activation::kIdentity,
     "",
     {PoolingMode::kMean}},
    {"whisper",
     "WhisperForAudioClassification",
     "projector",
     "classifier",
     Activation::kIdentity,
     "",
     {PoolingMode::kMean}},
    {"vit", "ViTForImageClassification", "classifier", "", Activation::kIdentity},
    {"dinov2",
     "Dinov2ForImageClassification",
     "classifier",
     "",
     Activation::kIdentity,
     "",
     {PoolingMode::kFirstToken, PoolingMode::kFeatureMean}},
    {"siglip_vision",
     "SiglipForImageClassification",
     "classifier",
     "",
     Activation::kIdentity,
     "",
     {PoolingMode::kMean}},
    {"qwen3",
     "Qwen3ForSequenceClassification",
     "score",
     "",
     Activation::kIdentity,
     "",
     {PoolingMode::kLastToken}},
    {"eurobert",
     "EuroBertForSequenceClassification",
     "dense",
     "classifier",
     Activation::kGelu,
     "",
     {PoolingMode::kMean}},
};

// The library's key, and that of the published code.
TEST(ClassifierConfigTest, EuroBertScoresAsItsConfigSays) {
  const Head head = {"eurobert", "", "dense", "classifier", Activation::kGelu};
  const Files files = Make(head, "EuroBertForSequenceClassification");
  for (const auto& [key, mode] :
       {std::pair{R"("classifier_pooling": "late")", PoolingMode::kLateMean},
        {R"("clf_pooling": "late")", PoolingMode::kLateMean},
        {R"("clf_pooling": "mean")", PoolingMode::kMean},
        {R"("clf_pooling": "bos")", PoolingMode::kFirstToken},
        {R"("clf_pooling": null)", PoolingMode::kLateMean}}) {
    Files changed = files;
    changed.config = absl::StrReplaceAll(files.config, {{R"("classifier_pooling": "mean")", key}});
    const absl::StatusOr<Checkpoint> checkpoint = Open(changed);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_THAT(checkpoint->description.classifier->modes, ElementsAre(mode)) << key;
  }
  Files other = files;
  other.config = absl::StrReplaceAll(files.config, {{R"("mean")", R"("cls")"}});
  EXPECT_THAT(std::string(Open(other).status().message()),
              HasSubstr("classifier_pooling or clf_pooling: expected one of bos, mean, late; got "
                        "'cls'"));
}

// As GenericForSequenceClassification of transformers.
TEST(ClassifierConfigTest, CausalModelsSkipThePaddingOfTheirConfig) {
  const Head head = {"qwen3", "", "score", "", Activation::kIdentity};
  const Files files = Make(head, "Qwen3ForSequenceClassification");
  for (const auto& [pair, padding_id] :
       {std::pair{R"({"pad_token_id": 3,)", 3}, {R"({"pad_token_id": null,)", -1}, {"{", -1}}) {
    Files changed = files;
    changed.config = absl::StrReplaceAll(files.config, {{R"("pad_token_id": 0,)", ""}});
    changed.config.replace(changed.config.find('{'), 1, pair);
    const absl::StatusOr<Checkpoint> checkpoint = Open(changed);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->description.classifier->padding_id, padding_id) << pair;
  }
}

TEST(ClassifierConfigTest, RefusesAHeadOfTheWrongShape) {
  const Head head = {"roberta",         "",        "classifier.dense", "classifier.out_proj",
                     Activation::kTanh, "roberta."};
  Files files = Make(head, "RobertaForSequenceClassification");
  for (TestTensor& tensor : files.tensors) {
    if (tensor.name == "classifier.out_proj.bias") tensor = MakeTensor(tensor.name, {4});
  }
  const absl::Status status = Open(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("classifier.out_proj.bias"));
}

INSTANTIATE_TEST_SUITE_P(Heads, ClassifierTest, ::testing::ValuesIn(kHeads),
                         [](const auto& tested) { return tested.param.family; });

// Opens a tiny BERT of this architecture with one more linear layer, which has 3 outputs.
absl::StatusOr<Checkpoint> OpenWithLayer(const TempFolder& folder, const std::string& architecture,
                                         const std::string& layer) {
  const Head head = {"bert", architecture, layer, "", Activation::kIdentity, "bert."};
  return Open(Make(head, architecture), folder);
}

TEST(TokenHeadTest, ScoresTokensOrTheEndsOfAnswers) {
  for (const auto& [architecture, layer] : {std::pair{"BertForTokenClassification", "classifier"},
                                            {"BertForQuestionAnswering", "qa_outputs"}}) {
    const TempFolder folder;
    absl::StatusOr<Checkpoint> checkpoint = OpenWithLayer(folder, architecture, layer);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->description.token_head,
              (PoolingDescription{.modes = {}, .dense_width = 3}));
    EXPECT_FALSE(checkpoint->description.classifier.has_value());
    EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.weight"),
              TestValues(absl::StrCat(layer, ".weight"), 12));
    EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.bias"),
              TestValues(absl::StrCat(layer, ".bias"), 3));
  }
}

TEST(TokenHeadTest, IsOfArchitecturesThatScoreTokensAlone) {
  for (const auto& [architecture, layer] :
       {std::pair{"BertForSequenceClassification", "classifier"},
        {"BertForMaskedLM", "classifier"},
        {"BertForTokenClassification", "other"}}) {
    const TempFolder folder;
    const absl::StatusOr<Checkpoint> checkpoint = OpenWithLayer(folder, architecture, layer);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->description.token_head.has_value());
  }
}

TEST(TokenHeadTest, OfT5IsOfTheEncoder) {
  const Head classes = {"t5", "", "classifier", "", Activation::kIdentity};
  Files files = Make(classes, "T5ForTokenClassification");
  for (TestTensor& tensor : files.tensors) {
    if (!tensor.name.starts_with("classifier.")) tensor.name = "transformer." + tensor.name;
  }
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.token_head,
            (PoolingDescription{.modes = {}, .dense_width = 3}));
  // In the library, this layer scores the decoder's tokens.
  const Head ends = {"t5", "", "qa_outputs", "", Activation::kIdentity};
  const absl::StatusOr<Checkpoint> answers = Open(Make(ends, "T5ForQuestionAnswering"));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_FALSE(answers->description.token_head.has_value());
  EXPECT_THAT(answers->warnings,
              Contains(HasSubstr("the head of T5ForQuestionAnswering is ignored")));
}

TEST(TokenHeadTest, ModernBertHasALayerAndANormBefore) {
  const Head head = {"modernbert",      "", "head.dense", "classifier",
                     Activation::kGelu, "", {},           "head.norm"};
  const Files files = Make(head, "ModernBertForTokenClassification");
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const PoolingDescription expected = {.modes = {},
                                       .dense_width = files.hidden_size,
                                       .dense_activation = Activation::kGelu,
                                       .has_dense_norm = true,
                                       .output_width = 3};
  EXPECT_EQ(checkpoint->description.token_head, expected);
}

// sentence-transformers loads such a model without its head.
TEST(ClassifierConfigTest, PoolingReplacesTheHead) {
  const Head head = {"bert", "", "bert.pooler.dense", "classifier", Activation::kTanh, "bert."};
  const TempFolder folder;
  const std::string transformer =
      R"({"path":"","type":"sentence_transformers.models.Transformer"})";
  folder.Write("modules.json", absl::StrCat("[", transformer, "]"));
  const Files files = Make(head, "BertForSequenceClassification");
  const absl::StatusOr<Checkpoint> classifier = Open(files, folder);
  ASSERT_TRUE(classifier.ok()) << classifier.status();
  EXPECT_TRUE(classifier->description.classifier.has_value());

  folder.Write("modules.json",
               absl::StrCat("[", transformer,
                            R"(,{"path":"1_P","type":"sentence_transformers.models.Pooling"}])"));
  folder.Write("1_P/config.json", R"({"word_embedding_dimension":4})");
  const absl::StatusOr<Checkpoint> embedder = Open(files, folder);
  ASSERT_TRUE(embedder.ok()) << embedder.status();
  EXPECT_FALSE(embedder->description.classifier.has_value());
  EXPECT_THAT(embedder->description.pooling->modes, ElementsAre(PoolingMode::kMean));
}

TEST(ClassifierConfigTest, SaysWhatTheHeadLooksAt) {
  const Head head = {"modernbert", "", "head.dense", "classifier", Activation::kGelu};
  const Files files = Make(head, "ModernBertForSequenceClassification");
  for (const auto& [name, mode] :
       {std::pair{"cls", PoolingMode::kFirstToken}, {"mean", PoolingMode::kMean}}) {
    const absl::StatusOr<Checkpoint> checkpoint =
        Open(WithConfig(files, absl::StrCat("\"classifier_pooling\": \"", name, "\"")));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_THAT(checkpoint->description.classifier->modes, ElementsAre(mode));
  }
  const absl::StatusOr<Checkpoint> without_head =
      Open(WithConfig(Make(head, "ModernBertModel"), R"("classifier_pooling": "mean")"));
  ASSERT_TRUE(without_head.ok()) << without_head.status();
  EXPECT_THAT(without_head->warnings, Each(Not(HasSubstr("classifier_pooling"))));
  const absl::Status status = Open(WithConfig(files, "\"classifier_pooling\": \"max\"")).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("classifier_pooling: expected one of cls, mean; got 'max'"));
}

TEST(ClassifierConfigTest, ModernBertSaysWhichActivationItsHeadsHave) {
  const Head head = {"modernbert", "", "head.dense", "classifier", Activation::kGelu};
  const Files files = Make(head, "ModernBertForSequenceClassification");
  const auto checkpoint = Open(WithConfig(files, R"("classifier_activation": "silu")"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.classifier->dense_activation, Activation::kSilu);
  EXPECT_THAT(Open(WithConfig(files, R"("classifier_activation": "none")")).status().message(),
              HasSubstr("classifier_activation: expected one of gelu"));
}

TEST(ClassifierConfigTest, HeadsThatLookAtAllLayersAreLeftOut) {
  const Head head = {"wav2vec2", "", "projector", "classifier", Activation::kIdentity};
  const absl::StatusOr<Checkpoint> checkpoint = Open(WithConfig(
      Make(head, "Wav2Vec2ForSequenceClassification"), "\"use_weighted_layer_sum\": true"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->description.classifier.has_value());
  EXPECT_THAT(checkpoint->warnings,
              Contains(HasSubstr("the head of Wav2Vec2ForSequenceClassification is ignored")));
}

TEST(ClassifierConfigTest, OtherHeadsAreLeftOutWithAWarning) {
  for (const auto& [family, architecture] : {std::pair{"wav2vec2", "Wav2Vec2ForCTC"},
                                             {"vit", "DeiTForImageClassificationWithTeacher"}}) {
    const Head head = {family, "", "cls_classifier", "", Activation::kIdentity};
    const absl::StatusOr<Checkpoint> checkpoint = Open(Make(head, architecture));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_THAT(checkpoint->warnings,
                Contains(HasSubstr(absl::StrCat("the head of ", architecture, " is ignored"))));
  }
}

}  // namespace classifier_test
}  // namespace attendant
