#include "engine/checkpoint/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace adapter_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr char kQuery[] = "encoder.layer.0.attention.self.query";
constexpr char kWords[] = "embeddings.word_embeddings";

class AdapterTest : public ::testing::Test {
 protected:
  AdapterTest() {
    base_.Write("config.json", TinyBertConfig());
    base_.Write("model.safetensors", MakeSafetensors(TinyBertTensors("bert.")));
  }

  absl::StatusOr<Checkpoint> Open(const Json& config, const std::vector<TestTensor>& tensors) {
    adapter_.Write("adapter_config.json", config.dump());
    adapter_.Write("adapter_model.safetensors", MakeSafetensors(tensors));
    CheckpointOptions options;
    options.adapter = adapter_.path();
    return OpenCheckpoint(base_.path(), options);
  }

  std::string Refusal(const Json& config, const std::vector<TestTensor>& tensors) {
    const absl::Status status = Open(config, tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder base_, adapter_;
};

const Json kConfig = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 3}};

std::string NameOf(const std::string& module, const std::string& end) {
  return "base_model.model." + module + end;
}

std::vector<TestTensor> LinearTensors(const std::string& module, int64_t in, int64_t out,
                                      int64_t rank = 2) {
  return {MakeTensor(NameOf(module, ".lora_A.weight"), {rank, in}),
          MakeTensor(NameOf(module, ".lora_B.weight"), {out, rank})};
}

// W + scale B A of a module of the tiny BERT, in float64.
std::vector<float> Merged(const std::string& module, int64_t in, int64_t out, double scale,
                          int64_t rank = 2) {
  const auto a = TestValues(NameOf(module, ".lora_A.weight"), rank * in);
  const auto b = TestValues(NameOf(module, ".lora_B.weight"), out * rank);
  std::vector<float> merged = TestValues("bert." + module + ".weight", in * out);
  for (int64_t i = 0; i < in * out; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < rank; ++k) sum += double{b[i / in * rank + k]} * a[k * in + i % in];
    merged[i] = static_cast<float>(merged[i] + scale * sum);
  }
  return merged;
}

TEST_F(AdapterTest, AddsTheProductToALinearLayer) {
  absl::StatusOr<Checkpoint> model = Open(kConfig, LinearTensors(kQuery, 4, 4));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(ReadTensor(*model, "layer.0.query.weight"),
              Pointwise(FloatNear(1e-6), Merged(kQuery, 4, 4, 1.5)));
  EXPECT_EQ(ReadTensor(*model, "layer.0.key.weight"),
            TestValues("bert.encoder.layer.0.attention.self.key.weight", 16));
  EXPECT_EQ(ReadTensor(*model, "layer.0.query.bias"),
            TestValues(std::string("bert.") + kQuery + ".bias", 4));
}

TEST_F(AdapterTest, AddsTheTransposedProductToATable) {
  const std::string a = NameOf(kWords, ".lora_embedding_A"),
                    b = NameOf(kWords, ".lora_embedding_B");
  absl::StatusOr<Checkpoint> model = Open(kConfig, {MakeTensor(a, {2, 10}), MakeTensor(b, {4, 2})});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto of_a = TestValues(a, 20), of_b = TestValues(b, 8);
  std::vector<float> merged = TestValues(std::string("bert.") + kWords + ".weight", 40);
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t k = 0; k < 2; ++k) merged[i] += 1.5f * of_a[k * 10 + i / 4] * of_b[i % 4 * 2 + k];
  }
  EXPECT_THAT(ReadTensor(*model, "embeddings.word"), Pointwise(FloatNear(1e-6), merged));
}

// Their sums would be rounded to the type of the file.
TEST_F(AdapterTest, TablesWithProductsAreFloat32) {
  std::vector<TestTensor> tensors;
  for (const TestTensor& tensor : TinyBertTensors("bert.")) {
    tensors.push_back(MakeTensor(tensor.name, tensor.shape, "BF16"));
  }
  base_.Write("model.safetensors", MakeSafetensors(tensors));
  const absl::StatusOr<Checkpoint> of_linear = Open(kConfig, LinearTensors(kQuery, 4, 4));
  ASSERT_TRUE(of_linear.ok()) << of_linear.status();
  EXPECT_EQ(of_linear->description.embeddings->table_type, DataType::kBFloat16);
  EXPECT_EQ(of_linear->description.linear_type, DataType::kFloat32);
  std::string stored(10 * 4 * 2, 'x');
  EXPECT_TRUE(
      of_linear->weights->ReadStored("embeddings.word", DataType::kBFloat16, absl::MakeSpan(stored))
          .value());

  const absl::StatusOr<Checkpoint> of_table =
      Open(kConfig, {MakeTensor(NameOf(kWords, ".lora_embedding_A"), {2, 10}),
                     MakeTensor(NameOf(kWords, ".lora_embedding_B"), {4, 2})});
  ASSERT_TRUE(of_table.ok()) << of_table.status();
  EXPECT_EQ(of_table->description.embeddings->table_type, DataType::kFloat32);
  EXPECT_FALSE(
      of_table->weights->ReadStored("embeddings.word", DataType::kBFloat16, absl::MakeSpan(stored))
          .value());
}

TEST_F(AdapterTest, ScalesByTheConfig) {
  const std::string value = "encoder.layer.0.attention.self.value";
  std::vector<TestTensor> tensors = LinearTensors("bert." + std::string(kQuery), 4, 4, 3);
  for (const TestTensor& tensor : LinearTensors("bert." + value, 4, 4)) tensors.push_back(tensor);
  Json config = kConfig;
  config["use_rslora"] = true;
  config["alpha_pattern"] = {{"layer.0.attention.self.query", 6}, {"lue", 100}};
  absl::StatusOr<Checkpoint> model = Open(config, tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto difference = [&](const char* canonical, const std::string& module, double scale,
                              int64_t rank) {
    const auto a = TestValues(NameOf("bert." + module, ".lora_A.weight"), rank * 4);
    const auto b = TestValues(NameOf("bert." + module, ".lora_B.weight"), rank * 4);
    double sum = TestValues("bert." + module + ".weight", 16)[0];
    for (int64_t k = 0; k < rank; ++k) sum += scale * a[k * 4] * b[k];
    return ReadTensor(*model, canonical)[0] - sum;
  };
  EXPECT_NEAR(difference("layer.0.query.weight", kQuery, 6 / std::sqrt(3), 3), 0, 1e-6);
  EXPECT_NEAR(difference("layer.0.value.weight", value, 3 / std::sqrt(2), 2), 0, 1e-6);
}

// Each projection is some of the rows of one tensor.
TEST_F(AdapterTest, AddsItsRowsToEachPartOfATensor) {
  const Json config = {{"model_type", "nomic_bert"},
                       {"n_embd", 4},
                       {"n_head", 2},
                       {"n_layer", 1},
                       {"n_inner", 8},
                       {"vocab_size", 10},
                       {"n_positions", 16},
                       {"type_vocab_size", 2},
                       {"rotary_emb_fraction", 1.0},
                       {"activation_function", "swiglu"}};
  const std::string qkv = "encoder.layers.0.attn.Wqkv";
  std::vector<TestTensor> tensors = {MakeTensor("embeddings.word_embeddings.weight", {10, 4}),
                                     MakeTensor("embeddings.token_type_embeddings.weight", {2, 4}),
                                     MakeTensor("emb_ln.weight", {4}),
                                     MakeTensor("emb_ln.bias", {4}),
                                     MakeTensor(qkv + ".weight", {12, 4}),
                                     MakeTensor("encoder.layers.0.attn.out_proj.weight", {4, 4}),
                                     MakeTensor("encoder.layers.0.norm1.weight", {4}),
                                     MakeTensor("encoder.layers.0.norm1.bias", {4}),
                                     MakeTensor("encoder.layers.0.mlp.fc11.weight", {8, 4}),
                                     MakeTensor("encoder.layers.0.mlp.fc12.weight", {8, 4}),
                                     MakeTensor("encoder.layers.0.mlp.fc2.weight", {4, 8}),
                                     MakeTensor("encoder.layers.0.norm2.weight", {4}),
                                     MakeTensor("encoder.layers.0.norm2.bias", {4})};
  base_.Write("config.json", config.dump());
  base_.Write("model.safetensors", MakeSafetensors(tensors));
  absl::StatusOr<Checkpoint> model = Open(kConfig, LinearTensors(qkv, 4, 12));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto a = TestValues(NameOf(qkv, ".lora_A.weight"), 8);
  const auto b = TestValues(NameOf(qkv, ".lora_B.weight"), 24);
  const auto whole = TestValues(qkv + ".weight", 48);
  int64_t row = 0;
  for (const char* part : {"query", "key", "value"}) {
    const auto merged = ReadTensor(*model, std::string("layer.0.") + part + ".weight");
    for (int64_t i = 0; i < 16; ++i) {
      const int64_t r = row + i / 4, c = i % 4;
      const double sum = double{b[r * 2]} * a[c] + double{b[r * 2 + 1]} * a[4 + c];
      EXPECT_NEAR(merged[i], whole[r * 4 + c] + 1.5 * sum, 1e-6) << part << " " << i;
    }
    row += 4;
  }
}

// The rows of its queries, keys and values alternate by the head.
TEST_F(AdapterTest, RefusesTheProjectionOfNeoBert) {
  const Json config = {{"model_type", "neobert"},  {"hidden_size", 4},
                       {"num_attention_heads", 2}, {"num_hidden_layers", 1},
                       {"intermediate_size", 12},  {"vocab_size", 10}};
  const std::string layer = "transformer_encoder.0.";
  base_.Write("config.json", config.dump());
  base_.Write(
      "model.safetensors",
      MakeSafetensors({MakeTensor("encoder.weight", {10, 4}), MakeTensor("layer_norm.weight", {4}),
                       MakeTensor(layer + "qkv.weight", {12, 4}),
                       MakeTensor(layer + "wo.weight", {4, 4}),
                       MakeTensor(layer + "attention_norm.weight", {4}),
                       MakeTensor(layer + "ffn.w12.weight", {16, 4}),
                       MakeTensor(layer + "ffn.w3.weight", {4, 8}),
                       MakeTensor(layer + "ffn_norm.weight", {4})}));
  EXPECT_THAT(Refusal(kConfig, LinearTensors(layer + "qkv", 4, 12)),
              HasSubstr("the layout of the tensor 'transformer_encoder.0.qkv.weight' is not "
                        "supported; merge the adapter with PEFT's merge_and_unload"));
  EXPECT_TRUE(Open(kConfig, LinearTensors(layer + "wo", 4, 4)).ok());
}

TEST_F(AdapterTest, RefusesOtherKinds) {
  Json config = kConfig;
  config["peft_type"] = "IA3";
  config["bias"] = "all";
  config["use_dora"] = true;
  config["modules_to_save"] = {"classifier"};
  config["lora_alpha"] = "much";
  config["alpha_pattern"] = {{".*query", 1}};
  EXPECT_THAT(Refusal(config, LinearTensors(kQuery, 4, 4)),
              AllOf(HasSubstr(adapter_.File("adapter_config.json")),
                    HasSubstr("'peft_type': expected 'LORA'; got 'IA3'"),
                    HasSubstr("'bias': expected 'none'; got 'all'; merge the adapter with PEFT's "
                              "merge_and_unload"),
                    HasSubstr("'use_dora': not supported; merge"),
                    HasSubstr("'modules_to_save': not supported; merge"),
                    HasSubstr("'lora_alpha': expected a number; got 'much'"),
                    HasSubstr("'alpha_pattern': expected names of modules; got '.*query'")));
}

// PEFT computes the residual of the base again when it loads them.
TEST_F(AdapterTest, RefusesInitializationsThatChangeTheBase) {
  Json config = kConfig;
  for (const char* init : {"pissa", "pissa_niter_16", "OLoRA", "corda", "loftq"}) {
    config["init_lora_weights"] = init;
    EXPECT_THAT(Refusal(config, LinearTensors(kQuery, 4, 4)),
                HasSubstr(absl::StrCat("'init_lora_weights': not supported: '", init,
                                       "' changes the base's weights; merge the adapter")));
  }
  for (const Json& init : {Json(true), Json(false), Json("gaussian"), Json("eva"), Json()}) {
    config["init_lora_weights"] = init;
    const absl::Status status = Open(config, LinearTensors(kQuery, 4, 4)).status();
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Like target_modules="all-linear" with modules.json, which says how to pool.
TEST_F(AdapterTest, LeavesOutModulesThatTheModelDoesNotUse) {
  base_.Write("modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"},
    {"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}])");
  base_.Write("1_Pooling/config.json", R"({"word_embedding_dimension":4})");
  std::vector<TestTensor> tensors = LinearTensors(kQuery, 4, 4);
  for (const TestTensor& tensor : LinearTensors("pooler.dense", 4, 4)) tensors.push_back(tensor);
  EXPECT_THAT(Refusal(kConfig, tensors),
              HasSubstr("module 'pooler.dense': the model has no module of that name; merge"));

  std::vector<TestTensor> of_base = TinyBertTensors("bert.");
  of_base.push_back(MakeTensor("bert.pooler.dense.weight", {4, 4}));
  of_base.push_back(MakeTensor("bert.pooler.dense.bias", {4}));
  base_.Write("model.safetensors", MakeSafetensors(of_base));
  absl::StatusOr<Checkpoint> model = Open(kConfig, tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(ReadTensor(*model, "layer.0.query.weight"),
              Pointwise(FloatNear(1e-6), Merged(kQuery, 4, 4, 1.5)));
  EXPECT_THAT(model->warnings,
              Contains(adapter_.File("adapter_model.safetensors") +
                       ": no effect, because the model does not use these modules: "
                       "'pooler.dense'"));
}

TEST_F(AdapterTest, RefusesPicklesWithTheCommandThatConvertsThem) {
  adapter_.Write("adapter_config.json", kConfig.dump());
  adapter_.Write("adapter_model.bin", "pickle");
  CheckpointOptions options;
  options.adapter = adapter_.path();
  EXPECT_THAT(std::string(OpenCheckpoint(base_.path(), options).status().message()),
              AllOf(HasSubstr(adapter_.path() + ": only safetensors are read; got "
                                                "'adapter_model.bin', a pickle"),
                    HasSubstr("glob.glob('adapter_model.bin')"),
                    EndsWith("'adapter_model.safetensors')\"")));
}

// The base's modules are used, and without them texts would be pooled in another way.
TEST_F(AdapterTest, RefusesModulesThatTheBaseDoesNotHave) {
  adapter_.Write("modules.json", "[]");
  EXPECT_EQ(Refusal(kConfig, LinearTensors(kQuery, 4, 4)),
            absl::StrCat(adapter_.File("modules.json"),
                         ": not supported without a modules.json of the base ", base_.path(),
                         "; copy it, the directories that it lists, sentence_bert_config.json and "
                         "config_sentence_transformers.json to the base, or decide with pooling="));
  CheckpointOptions options;
  options.adapter = adapter_.path();
  options.pooling = PoolingChoice::kFirstToken;
  EXPECT_TRUE(OpenCheckpoint(base_.path(), options).ok());
  base_.Write("modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  EXPECT_TRUE(Open(kConfig, LinearTensors(kQuery, 4, 4)).ok());
}

TEST_F(AdapterTest, RefusesWhatDoesNotFitTheModel) {
  std::vector<TestTensor> tensors = LinearTensors(kQuery, 5, 4);
  tensors.push_back(MakeTensor(NameOf("encoder.layer.7.output.dense", ".lora_A.weight"), {2, 8}));
  tensors.push_back(MakeTensor(NameOf("encoder.layer.7.output.dense", ".lora_B.weight"), {4, 2}));
  tensors.push_back(MakeTensor(NameOf("encoder.layer.1.output.dense", ".lora_A.weight"), {2, 8}));
  tensors.push_back(MakeTensor("base_model.model.classifier.weight", {2, 4}));
  EXPECT_THAT(
      Refusal(kConfig, tensors),
      AllOf(
          HasSubstr(adapter_.File("adapter_model.safetensors")),
          HasSubstr("lora_A.weight' F32 [2, 5]: expected F32, F16, BF16 or F64 [2, 4]"),
          HasSubstr("module 'encoder.layer.7.output.dense': the model has no module of that name"),
          HasSubstr("module 'encoder.layer.1.output.dense': expected the LoRA matrices A [r, .] "
                    "and B [., r]"),
          HasSubstr("tensor 'base_model.model.classifier.weight': expected a LoRA matrix")));
  EXPECT_THAT(Refusal(kConfig, {}), HasSubstr("no LoRA matrices"));
  EXPECT_THAT(Refusal(Json::array(), {}), HasSubstr("expected an object; got a list"));
}

TEST_F(AdapterTest, IsNotFound) {
  CheckpointOptions options;
  options.adapter = base_.File("none");
  EXPECT_EQ(OpenCheckpoint(base_.path(), options).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AdapterTest, NeedsItsModel) {
  adapter_.Write("adapter_config.json", R"({"base_model_name_or_path":"org/base"})");
  adapter_.Write("modules.json", "[]");
  EXPECT_EQ(OpenCheckpoint(adapter_.path(), {}).status().message(),
            adapter_.path() +
                ": expected a model; got only an adapter of 'org/base'; serve both: "
                "NAME=DIRECTORY_OF_THAT_MODEL,adapter=" +
                adapter_.path());
}

}  // namespace adapter_test
}  // namespace attendant
