#include "engine/checkpoint/task_adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace task_adapters_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kWeight[] = ".parametrizations.weight.original";
constexpr char kA[] = ".parametrizations.weight.0.lora_A",
               kB[] = ".parametrizations.weight.0.lora_B";

// jina-embeddings-v3 as its authors publish it, with E 8, H 2, F 12 and one layer.
class TaskAdaptersTest : public ::testing::Test {
 protected:
  static constexpr int64_t kTasks = 2, kRank = 3;

  TaskAdaptersTest() {
    AddTable("roberta.embeddings.word_embeddings", 10);
    AddTable("roberta.embeddings.token_type_embeddings", 1);
    AddNorm("roberta.emb_ln");
    const std::string layer = "roberta.encoder.layers.0.";
    AddLinear(layer + "mixer.Wqkv", 8, 24);
    AddLinear(layer + "mixer.out_proj", 8, 8);
    AddNorm(layer + "norm1");
    AddLinear(layer + "mlp.fc1", 8, 12);
    AddLinear(layer + "mlp.fc2", 12, 8);
    AddNorm(layer + "norm2");
    AddLinear("roberta.pooler.dense", 8, 8);
  }

  void AddNorm(const std::string& name) {
    for (const char* part : {".weight", ".bias"}) tensors_.push_back(MakeTensor(name + part, {8}));
  }
  void AddLinear(const std::string& name, int64_t in, int64_t out) {
    tensors_.push_back(MakeTensor(name + kWeight, {out, in}));
    tensors_.push_back(MakeTensor(name + ".bias", {out}));
    tensors_.push_back(MakeTensor(name + kA, {kTasks, kRank, in}));
    tensors_.push_back(MakeTensor(name + kB, {kTasks, out, kRank}));
  }
  void AddTable(const std::string& name, int64_t rows) {
    tensors_.push_back(MakeTensor(name + kWeight, {rows, 8}));
    tensors_.push_back(MakeTensor(name + kA, {kTasks, rows, kRank}));
    tensors_.push_back(MakeTensor(name + kB, {kTasks, kRank, 8}));
  }

  absl::StatusOr<Checkpoint> Open(const std::string& task) {
    folder_.Write("config.json", config_.dump());
    folder_.Write("model.safetensors", MakeSafetensors(tensors_));
    CheckpointOptions options;
    options.task = task;
    return OpenCheckpoint(folder_.path(), options);
  }

  std::string Refusal(const std::string& task) {
    const absl::Status status = Open(task).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
  Json config_ = {{"model_type", "xlm-roberta"},
                  {"architectures", {"XLMRobertaModel"}},
                  {"position_embedding_type", "rotary"},
                  {"rotary_emb_base", 20000.0},
                  {"hidden_size", 8},
                  {"num_attention_heads", 2},
                  {"num_hidden_layers", 1},
                  {"intermediate_size", 12},
                  {"hidden_act", "gelu"},
                  {"layer_norm_eps", 1e-5},
                  {"vocab_size", 10},
                  {"type_vocab_size", 1},
                  {"max_position_embeddings", 16},
                  {"pad_token_id", 1},
                  {"lora_adaptations", {"retrieval.query", "separation"}},
                  {"lora_alpha", 1},
                  {"lora_rank", 3},
                  {"lora_dropout_p", 0.0},
                  {"use_reg_tokens", false}};
  std::vector<TestTensor> tensors_;
};

TEST_F(TaskAdaptersTest, WithoutATaskTheModelIsItsBase) {
  absl::StatusOr<Checkpoint> model = Open("");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->description.family, "jina_embeddings_v3");
  EXPECT_EQ(model->description.layer.relative_positions.kind, RelativePositions::kRotary);
  EXPECT_EQ(ReadTensor(*model, "embeddings.word"),
            TestValues(std::string("roberta.embeddings.word_embeddings") + kWeight, 80));
  EXPECT_THAT(model->warnings, Contains(HasSubstr("no adapter is merged; the option "
                                                  "task=retrieval.query, task=separation merges")));
}

TEST_F(TaskAdaptersTest, ATaskAddsItsMatricesToLinearLayers) {
  absl::StatusOr<Checkpoint> model = Open("separation");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string name = "roberta.encoder.layers.0.mixer.Wqkv";
  const auto whole = TestValues(name + kWeight, 24 * 8);
  const auto a = TestValues(name + kA, kTasks * kRank * 8);
  const auto b = TestValues(name + kB, kTasks * 24 * kRank);
  int64_t row = 0;
  for (const char* part : {"query", "key", "value"}) {
    const auto merged = ReadTensor(*model, std::string("layer.0.") + part + ".weight");
    for (int64_t i = 0; i < 64; ++i) {
      const int64_t r = row + i / 8, c = i % 8;
      double sum = 0;
      for (int64_t k = 0; k < kRank; ++k) {
        sum += double{b[(24 + r) * kRank + k]} * a[(kRank + k) * 8 + c];
      }
      EXPECT_NEAR(merged[i], whole[r * 8 + c] + sum / 3, 1e-6) << part << " " << i;
    }
    row += 8;
  }
  std::vector<float> bias = TestValues(name + ".bias", 24);
  bias.resize(8);
  EXPECT_EQ(ReadTensor(*model, "layer.0.query.bias"), bias);
}

TEST_F(TaskAdaptersTest, ATaskAddsItsMatricesToTables) {
  absl::StatusOr<Checkpoint> model = Open("separation");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const auto& [canonical, name, rows] :
       {std::tuple{"embeddings.word", "roberta.embeddings.word_embeddings", int64_t{10}},
        std::tuple{"embeddings.token_type", "roberta.embeddings.token_type_embeddings",
                   int64_t{1}}}) {
    const auto whole = TestValues(std::string(name) + kWeight, rows * 8);
    const auto a = TestValues(std::string(name) + kA, kTasks * rows * kRank);
    const auto b = TestValues(std::string(name) + kB, kTasks * kRank * 8);
    const auto merged = ReadTensor(*model, canonical);
    for (int64_t i = 0; i < rows * 8; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < kRank; ++k) {
        sum += double{a[(rows + i / 8) * kRank + k]} * b[(kRank + k) * 8 + i % 8];
      }
      EXPECT_NEAR(merged[i], whole[i] + sum / 3, 1e-6) << canonical << " " << i;
    }
  }
}

// Of a folder for sentence-transformers.
TEST_F(TaskAdaptersTest, ModulesMayHaveTheAuthorsTransformer) {
  folder_.Write("modules.json",
                R"([{"path": "", "type": "custom_st.Transformer", "kwargs": ["task"]},
                    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  folder_.Write("1_Pooling/config.json",
                R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})");
  const absl::StatusOr<Checkpoint> model = Open("separation");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kMean}, .normalize = true}));
}

TEST_F(TaskAdaptersTest, RefusesOtherTasks) {
  EXPECT_THAT(Refusal("retrieval"),
              HasSubstr("task: expected one of retrieval.query, separation; got 'retrieval'"));
  config_.erase("lora_alpha");
  EXPECT_THAT(Refusal("separation"), HasSubstr("config.json: lora_alpha: expected a number"));
  config_.erase("lora_adaptations");
  EXPECT_THAT(Refusal("separation"),
              HasSubstr("task: not supported (config.json has no lora_adaptations)"));
}

TEST_F(TaskAdaptersTest, RefusesMatricesThatDoNotFit) {
  for (TestTensor& tensor : tensors_) {
    if (tensor.name == std::string("roberta.encoder.layers.0.mlp.fc1") + kA) {
      tensor = MakeTensor(tensor.name, {5, kRank, 8});
    } else if (tensor.name == std::string("roberta.encoder.layers.0.mlp.fc2") + kB) {
      tensor = MakeTensor(tensor.name, {kTasks, 9, kRank});
    }
  }
  EXPECT_THAT(Refusal("separation"),
              AllOf(HasSubstr("mlp.fc1.parametrizations.weight.0.lora_A' F32 [5, 3, 8]: expected "
                              "[2, rank, 8] or [2, 12, rank]"),
                    HasSubstr("mlp.fc2.parametrizations.weight.0.lora_B' F32 [2, 9, 3]: expected "
                              "F32, F16, BF16 or F64 [2, 8, 3]")));
}

TEST_F(TaskAdaptersTest, OnlyFoldersOfHuggingFacesHaveTasks) {
  CheckpointOptions options;
  options.task = "separation";
  EXPECT_EQ(OpenCheckpoint("synthetic:tiny", options).status().message(),
            "synthetic:tiny: task: not supported: only Hugging Face models have this option");
}

}  // namespace task_adapters_test
}  // namespace attendant
