#include "engine/checkpoint/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/shape.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace hugging_face_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Tensors = std::vector<TestTensor>;

void WriteModel(const TempFolder& folder, const std::string& config, const Tensors& tensors) {
  folder.Write("config.json", config);
  folder.Write("model.safetensors", MakeSafetensors(tensors));
}

Checkpoint OpenModel(const TempFolder& folder) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : OpenCheckpoint("worked-example", {}).value();
}

std::string Refusal(const TempFolder& folder) {
  const absl::Status status = OpenCheckpoint(folder.path(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.path()));
  return std::string(status.message());
}

std::string Renamed(std::string name, const std::vector<std::pair<std::string, std::string>>& to) {
  return absl::StrReplaceAll(name, to);
}

// Expects that every weight of the model is the tensor that `names` gives for it.
using NameTable = std::vector<std::pair<std::string, std::string>>;
void ExpectValues(Checkpoint& checkpoint, const NameTable& names) {
  for (const auto& [canonical, in_file] : names) {
    const std::vector<float> values = ReadTensor(checkpoint, canonical);
    EXPECT_EQ(values, TestValues(in_file, static_cast<int64_t>(values.size()))) << canonical;
    EXPECT_TRUE(checkpoint.weights->Has(canonical)) << canonical;
  }
}

NameTable BertNames(const std::string& prefix) {
  NameTable names = {
      {"embeddings.word", prefix + "embeddings.word_embeddings.weight"},
      {"embeddings.position", prefix + "embeddings.position_embeddings.weight"},
      {"embeddings.token_type", prefix + "embeddings.token_type_embeddings.weight"},
  };
  const auto add_pair = [&](const std::string& canonical, const std::string& in_file) {
    names.emplace_back(canonical + ".weight", prefix + in_file + ".weight");
    names.emplace_back(canonical + ".bias", prefix + in_file + ".bias");
  };
  add_pair("embeddings.norm", "embeddings.LayerNorm");
  for (const char* i : {"0", "1"}) {
    const std::string to = absl::StrCat("layer.", i, ".");
    const std::string from = absl::StrCat("encoder.layer.", i, ".");
    add_pair(to + "query", from + "attention.self.query");
    add_pair(to + "key", from + "attention.self.key");
    add_pair(to + "value", from + "attention.self.value");
    add_pair(to + "output", from + "attention.output.dense");
    add_pair(to + "attention_norm", from + "attention.output.LayerNorm");
    add_pair(to + "feed_forward_in", from + "intermediate.dense");
    add_pair(to + "feed_forward_out", from + "output.dense");
    add_pair(to + "feed_forward_norm", from + "output.LayerNorm");
  }
  return names;
}

TEST(HuggingFace, ReadsBert) {
  TempFolder folder;
  WriteModel(folder, TinyBertConfig(), TinyBertTensors());
  Checkpoint checkpoint = OpenModel(folder);
  const ModelDescription& description = checkpoint.description;
  EXPECT_EQ(description.family, "bert");
  EXPECT_EQ(description.layers, 2);
  EXPECT_EQ(description.layer.hidden_size, 4);
  EXPECT_EQ(description.layer.attention.heads, 2);
  EXPECT_EQ(description.layer.attention.key_width, 2);
  EXPECT_EQ(description.layer.attention.value_width, 2);
  EXPECT_EQ(description.layer.feed_forward.width, 8);
  EXPECT_FLOAT_EQ(description.layer.attention.score_scale, 0.70710678f);
  EXPECT_EQ(description.layer.norms.placement, NormPlacement::kPost);
  EXPECT_EQ(description.layer.norms.epsilon, 1e-12f);
  EXPECT_EQ(description.layer.feed_forward.activation, Activation::kGelu);
  EXPECT_EQ(description.embeddings->vocabulary, 10);
  EXPECT_EQ(description.embeddings->longest_sequence(), 6);
  EXPECT_EQ(description.embeddings->token_types, 2);
  EXPECT_EQ(description.embeddings->position_rule, PositionRule::kIndexFromFirstKept);
  EXPECT_FALSE(description.pooling.has_value());
  EXPECT_FALSE(description.has_exit_norm);
  EXPECT_THAT(checkpoint.unused_tensors, IsEmpty());
  EXPECT_EQ(BertNames("").size(), ListWeights(description).size());
  ExpectValues(checkpoint, BertNames(""));
}

TEST(HuggingFace, ReadsBertUnderAHead) {
  TempFolder folder;
  Tensors tensors = TinyBertTensors("bert.");
  tensors.push_back(MakeTensor("cls.predictions.bias", {10}));
  tensors.push_back(MakeTensor("classifier.weight", {2, 4}));
  tensors.push_back({"bert.embeddings.position_ids", {1, 1}, "I64", std::string(8, '\0')});
  WriteModel(folder, TinyBertConfig(), tensors);
  Checkpoint checkpoint = OpenModel(folder);
  EXPECT_THAT(checkpoint.unused_tensors, ElementsAre("classifier.weight", "cls.predictions.bias"));
  ExpectValues(checkpoint, BertNames("bert."));
}

TEST(HuggingFace, ReadsThePooler) {
  for (const char* prefix : {"", "bert."}) {
    TempFolder folder;
    Tensors tensors = TinyBertTensors(prefix);
    const std::string pooler = absl::StrCat(prefix, "pooler.dense.");
    tensors.push_back(MakeTensor(pooler + "weight", {4, 4}));
    tensors.push_back(MakeTensor(pooler + "bias", {4}));
    WriteModel(folder, TinyBertConfig(), tensors);
    Checkpoint checkpoint = OpenModel(folder);
    const PoolingDescription expected = {.modes = {PoolingMode::kFirstToken},
                                         .dense_width = 4,
                                         .dense_activation = Activation::kTanh};
    EXPECT_EQ(checkpoint.description.pooling, expected);
    ExpectValues(checkpoint, {{"pooling.dense.weight", pooler + "weight"},
                              {"pooling.dense.bias", pooler + "bias"}});
  }
}

TEST(HuggingFace, ReadsGammaAndBeta) {
  TempFolder folder;
  Tensors tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    tensor.name = Renamed(tensor.name, {{"LayerNorm.weight", "LayerNorm.gamma"},
                                        {"LayerNorm.bias", "LayerNorm.beta"}});
  }
  WriteModel(folder, TinyBertConfig(), tensors);
  Checkpoint checkpoint = OpenModel(folder);
  ExpectValues(checkpoint, BertNames(""));  // the values go by the names before the renaming

  tensors.push_back(MakeTensor("embeddings.LayerNorm.weight", {4}));
  WriteModel(folder, TinyBertConfig(), tensors);
  EXPECT_THAT(Refusal(folder),
              HasSubstr("tensor 'embeddings.LayerNorm.gamma' F32 [4]: unexpected in this"));
}

TEST(HuggingFace, ReadsRoberta) {
  for (const char* type : {"roberta", "xlm-roberta", "camembert"}) {
    TempFolder folder;
    Tensors tensors = TinyBertTensors("roberta.");
    tensors.push_back(MakeTensor("lm_head.bias", {10}));
    WriteModel(folder,
               Renamed(TinyBertConfig(), {{"\"bert\"", absl::StrCat("\"", type, "\"")},
                                          {"\"pad_token_id\": 0", "\"pad_token_id\": 2"},
                                          {"1e-12", "1e-05"}}),
               tensors);
    Checkpoint checkpoint = OpenModel(folder);
    const EmbeddingShape& embeddings = *checkpoint.description.embeddings;
    EXPECT_EQ(checkpoint.description.family, "roberta");
    EXPECT_EQ(embeddings.position_rule, PositionRule::kCountNotPadding);
    EXPECT_EQ(embeddings.first_position, 3);
    EXPECT_EQ(embeddings.positions, 6);
    EXPECT_EQ(embeddings.longest_sequence(), 3);
    EXPECT_EQ(embeddings.norm_epsilon, 1e-5f);
    EXPECT_EQ(checkpoint.description.layer.norms.epsilon, 1e-5f);
    EXPECT_THAT(checkpoint.unused_tensors, ElementsAre("lm_head.bias"));
    ExpectValues(checkpoint, BertNames("roberta."));
  }
}

TEST(HuggingFace, CountsRobertaPositionsFromTheUsualPaddingId) {
  TempFolder folder;
  WriteModel(folder,
             Renamed(TinyBertConfig(), {{"\"bert\"", "\"roberta\""},
                                        {"\"pad_token_id\": 0", "\"pad_token_id\": null"}}),
             TinyBertTensors());
  EXPECT_EQ(OpenModel(folder).description.embeddings->first_position, 2);
}

TEST(HuggingFace, ReadsDistilBert) {
  TempFolder folder;
  const NameTable to = {{"encoder.", "transformer."},
                        {"attention.self.query", "attention.q_lin"},
                        {"attention.self.key", "attention.k_lin"},
                        {"attention.self.value", "attention.v_lin"},
                        {"attention.output.dense", "attention.out_lin"},
                        {"attention.output.LayerNorm", "sa_layer_norm"},
                        {"intermediate.dense", "ffn.lin1"},
                        {"output.dense", "ffn.lin2"},
                        {"output.LayerNorm", "output_layer_norm"}};
  Tensors tensors;
  for (const TestTensor& tensor : TinyBertTensors("distilbert.")) {
    if (absl::StrContains(tensor.name, "token_type")) continue;
    tensors.push_back(MakeTensor(Renamed(tensor.name, to), tensor.shape));
  }
  for (const char* head : {"pre_classifier", "classifier"}) {
    tensors.push_back(MakeTensor(absl::StrCat(head, ".weight"), {4, 4}));
    tensors.push_back(MakeTensor(absl::StrCat(head, ".bias"), {4}));
  }
  WriteModel(folder, R"({"model_type": "distilbert", "dim": 4, "n_heads": 2, "n_layers": 2,
      "architectures": ["DistilBertForSequenceClassification"], "hidden_dim": 8, "activation": "gelu", "vocab_size": 10, "max_position_embeddings": 6})",
             tensors);
  Checkpoint checkpoint = OpenModel(folder);
  EXPECT_EQ(checkpoint.description.family, "distilbert");
  EXPECT_EQ(checkpoint.description.embeddings->token_types, 0);
  EXPECT_EQ(checkpoint.description.layer.norms.epsilon, 1e-12f);
  EXPECT_EQ(checkpoint.description.classifier->dense_activation, Activation::kRelu);
  NameTable names = {{"classifier.dense.weight", "pre_classifier.weight"},
                     {"classifier.dense.bias", "pre_classifier.bias"},
                     {"classifier.output.weight", "classifier.weight"},
                     {"classifier.output.bias", "classifier.bias"}};
  for (const auto& [canonical, in_file] : BertNames("distilbert.")) {
    if (canonical != "embeddings.token_type") names.emplace_back(canonical, Renamed(in_file, to));
  }
  EXPECT_EQ(names.size(), ListWeights(checkpoint.description).size());
  ExpectValues(checkpoint, names);
}

TEST(HuggingFace, ReadsElectraWithItsProjection) {
  TempFolder folder;
  Tensors tensors;
  for (const TestTensor& tensor : TinyBertTensors("electra.")) {
    std::vector<int64_t> shape = tensor.shape;
    if (absl::StrContains(tensor.name, "embeddings.")) shape.back() = 3;
    tensors.push_back(MakeTensor(tensor.name, shape));
  }
  tensors.push_back(MakeTensor("electra.embeddings_project.weight", {4, 3}));
  tensors.push_back(MakeTensor("electra.embeddings_project.bias", {4}));
  tensors.push_back(MakeTensor("discriminator_predictions.dense.weight", {4, 4}));
  WriteModel(folder,
             Renamed(TinyBertConfig(), {{"\"bert\"", "\"electra\", \"embedding_size\": 3"}}),
             tensors);
  Checkpoint checkpoint = OpenModel(folder);
  EXPECT_EQ(checkpoint.description.embeddings->width, 3);
  EXPECT_THAT(checkpoint.unused_tensors, ElementsAre("discriminator_predictions.dense.weight"));
  NameTable names = BertNames("electra.");
  names.emplace_back("embeddings.projection.weight", "electra.embeddings_project.weight");
  names.emplace_back("embeddings.projection.bias", "electra.embeddings_project.bias");
  EXPECT_EQ(names.size(), ListWeights(checkpoint.description).size());
  ExpectValues(checkpoint, names);
}

TEST(HuggingFace, KnowsArchitecturesWithoutAModelType) {
  for (const char* name : {"BertForMaskedLM", "BertModel"}) {
    TempFolder folder;
    WriteModel(folder,
               Renamed(TinyBertConfig(), {{"\"model_type\": \"bert\",", ""}, {"BertModel", name}}),
               TinyBertTensors());
    EXPECT_EQ(OpenModel(folder).description.family, "bert");
  }
}

TEST(HuggingFace, ReadsEveryFloatType) {
  for (const char* dtype : {"F16", "BF16", "F64"}) {
    TempFolder folder;
    Tensors tensors;
    for (const TestTensor& tensor : TinyBertTensors()) {
      tensors.push_back(MakeTensor(tensor.name, tensor.shape, dtype));
    }
    WriteModel(folder, TinyBertConfig(), tensors);
    Checkpoint checkpoint = OpenModel(folder);
    ExpectValues(checkpoint, BertNames(""));
    const DataType expected = dtype == std::string("F16")    ? DataType::kFloat16
                              : dtype == std::string("BF16") ? DataType::kBFloat16
                                                             : DataType::kFloat32;
    EXPECT_EQ(checkpoint.description.embeddings->table_type, expected);
    EXPECT_EQ(checkpoint.description.linear_type, expected);
  }
}

TEST(HuggingFace, KeepsTablesOfSeveralTypesInFloat32) {
  TempFolder folder;
  Tensors tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "embeddings.word_embeddings.weight") {
      tensor = MakeTensor(tensor.name, tensor.shape, "BF16");
    }
  }
  WriteModel(folder, TinyBertConfig(), tensors);
  EXPECT_EQ(OpenModel(folder).description.embeddings->table_type, DataType::kFloat32);
}

TEST(HuggingFace, TakesLinearLayersOfSeveralTypesForFloat32) {
  for (const char* other : {"F32", "F16"}) {
    TempFolder folder;
    Tensors tensors;
    for (const TestTensor& tensor : TinyBertTensors()) {
      const bool is_query = tensor.name == "encoder.layer.0.attention.self.query.weight";
      tensors.push_back(MakeTensor(tensor.name, tensor.shape, is_query ? other : "BF16"));
    }
    WriteModel(folder, TinyBertConfig(), tensors);
    const ModelDescription description = OpenModel(folder).description;
    EXPECT_EQ(description.linear_type, DataType::kFloat32);
    EXPECT_EQ(description.embeddings->table_type, DataType::kBFloat16);
  }
}

TEST(HuggingFace, W11TellsAllProblemsOfTheTensorsAtOnce) {
  TempFolder folder;
  Tensors tensors = TinyBertTensors("bert.");
  std::erase_if(tensors, [](const TestTensor& tensor) {
    return tensor.name == "bert.encoder.layer.1.attention.self.query.bias" ||
           tensor.name == "bert.embeddings.LayerNorm.weight";
  });
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "bert.encoder.layer.0.output.dense.weight") {
      tensor = MakeTensor(tensor.name, {8, 4});
    } else if (tensor.name == "bert.encoder.layer.0.output.dense.bias") {
      tensor = {tensor.name, {4}, "I8", "1234"};
    } else if (tensor.name == "bert.encoder.layer.0.attention.self.key.bias") {
      tensor = {tensor.name, {4}, "F8_E4M3", "1234"};
    }
  }
  tensors.push_back(MakeTensor("bert.encoder.layer.2.output.dense.bias", {4}));
  tensors.push_back(MakeTensor("bert.surprise", {4}));
  tensors.push_back(MakeTensor("classifier.bias", {4}));
  WriteModel(folder, TinyBertConfig(), tensors);
  const std::string file = folder.File("model.safetensors");
  EXPECT_THAT(
      Refusal(folder),
      AllOf(HasSubstr("7 problems: "),
            HasSubstr("tensor 'bert.embeddings.LayerNorm.weight' or "
                      "'bert.embeddings.LayerNorm.gamma': missing; expected [4]"),
            HasSubstr(
                "tensor 'bert.encoder.layer.1.attention.self.query.bias': missing; expected [4]"),
            HasSubstr(file + ": tensor 'bert.encoder.layer.0.output.dense.weight' F32 [8, 4]: "
                             "expected F32, F16, BF16 or F64 [4, 8]"),
            HasSubstr("'bert.encoder.layer.0.output.dense.bias' I8 [4]: expected F32"),
            HasSubstr("'bert.encoder.layer.0.attention.self.key.bias' F8_E4M3 [4]: expected F32"),
            HasSubstr("'bert.encoder.layer.2.output.dense.bias' F32 [4]: unexpected in this"),
            HasSubstr("'bert.surprise' F32 [4]: unexpected in this"),
            Not(HasSubstr("classifier"))));
}

TEST(HuggingFace, W11RefusesUnknownTensorsWithBareNames) {
  TempFolder folder;
  Tensors tensors = TinyBertTensors();
  tensors.push_back(MakeTensor("encoder.layer.0.attention.self.distance_embedding.weight", {4}));
  tensors.push_back(MakeTensor("head.weight", {4}));
  WriteModel(folder, TinyBertConfig(), tensors);
  EXPECT_THAT(Refusal(folder), AllOf(HasSubstr("distance_embedding"), Not(HasSubstr("head."))));
}

// Such as the one of torch's DataParallel.
TEST(HuggingFace, NamesThePrefixOfAnotherModule) {
  TempFolder folder;
  WriteModel(folder, TinyBertConfig(), TinyBertTensors("module.bert."));
  const std::string name = "encoder.layer.0.attention.output.dense.weight";
  EXPECT_EQ(Refusal(folder),
            absl::StrCat(folder.path(), ": tensor names: expected '", name, "'; got 'module.bert.",
                         name, "'; remove 'module.bert.' from all of them"));
}

}  // namespace hugging_face_test
}  // namespace attendant
