#include "server/models/model_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/settings/model_setting.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace model_loading_test {

std::vector<OpenedModel> Opened(const std::vector<std::string>& sources) {
  Settings settings;
  for (const std::string& source : sources)
    settings.models.push_back(*ParseModelSetting("m=" + source));
  return *OpenModels(settings);
}

TEST(LargestRequestBytesTest, IsTheWidestModels) {
  const auto models = Opened({"synthetic:minilm-l6", "synthetic:bert-base"});
  EXPECT_EQ(*LargestRequestBytes(models, 100), 100 * (768 * 4 + 32) + 65536);
}

TEST(LargestRequestBytesTest, LeavesRoomForAMaskOfInt64) {
  constexpr int64_t kTokens = 16384;
  const auto models = Opened({"synthetic:bert-base"});
  EXPECT_GT(*LargestRequestBytes(models, kTokens), kTokens * 768 * 4 + kTokens * 8);
}

TEST(LargestRequestBytesTest, RefusesWhatNoMessageHolds) {
  const auto models = Opened({"synthetic:bert-base"});
  const auto bytes = LargestRequestBytes(models, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(bytes.status().message(), testing::HasSubstr("2147483647 rows of 768 float32"));
}

// A base and an overlay, whose norms are `scale` times as large.
class OverlayTest : public testing::Test {
 protected:
  Settings SettingsWith(const std::vector<TestTensor>& norms) {
    folder_.Write("base/config.json", TinyBertConfig());
    folder_.Write("base/model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write("norms.safetensors", MakeSafetensors(norms));
    Settings settings;
    settings.models = {*ParseModelSetting("b=a,overlay=" + folder_.File("norms.safetensors")),
                       *ParseModelSetting("a=" + folder_.File("base"))};
    return settings;
  }

  TempFolder folder_;
};

TEST_F(OverlayTest, SharesAllButItsNorms) {
  auto opened = OpenModels(SettingsWith({MakeTensor("encoder.layer.1.output.LayerNorm.weight", {4}),
                                         MakeTensor("embeddings.LayerNorm.bias", {4})}));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)[0].setting.name, "a");
  const auto models = LoadModels(*std::move(opened));
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ(models->at("b")->base, "a");
  EXPECT_EQ(models->at("a")->base, "");
  EXPECT_EQ(models->at("b")->encoder->weight_bytes(), 8 * 4);
  EXPECT_GT(models->at("a")->encoder->weight_bytes(), 1000);
}

// The attention of the pruned layer belongs to the overlay, and is read again.
TEST_F(OverlayTest, MayLeaveOutHeads) {
  Settings settings = SettingsWith({MakeTensor("embeddings.LayerNorm.bias", {4})});
  folder_.Write("prune.json", R"({"1": [0]})");
  settings.models[0].prune_file = folder_.File("prune.json");
  auto opened = OpenModels(settings);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto predicted = [&](absl::Span<const OpenedModel> models) {
    return PredictMemory(models, settings, {.instances = 1, .threads_per_instance = 1})->weights;
  };
  const int64_t room = predicted(*opened) - predicted(absl::MakeSpan(*opened).first(1));
  const auto models = LoadModels(*std::move(opened));
  ASSERT_TRUE(models.ok()) << models.status();
  const Encoder& base = *models->at("a")->encoder;
  const Encoder& overlay = *models->at("b")->encoder;
  EXPECT_EQ(base.description().heads_at(1), 2);
  EXPECT_EQ(overlay.description().heads_at(1), 1);
  EXPECT_EQ(overlay.description().heads_at(0), 2);
  // One head of width 2: 2 rows of queries, keys and values, 2 columns of the output, and biases.
  EXPECT_GE(overlay.weight_bytes(), (4 + 3 * 2 * 4 + 4 * 2 + 3 * 2 + 4) * 4);
  EXPECT_LT(overlay.weight_bytes(), base.weight_bytes());
  EXPECT_LE(overlay.weight_bytes(), room);
}

TEST_F(OverlayTest, RefusesToLeaveOutHeadsOfAPrunedBase) {
  Settings settings = SettingsWith({MakeTensor("embeddings.LayerNorm.bias", {4})});
  folder_.Write("prune.json", R"({"1": [0]})");
  for (ModelSetting& model : settings.models) model.prune_file = folder_.File("prune.json");
  EXPECT_EQ(
      OpenModels(settings).status(),
      absl::InvalidArgumentError(
          "model b: prune: expected a base with all of its heads; got a, which is already pruned"));
  settings.models[1].prune_file.clear();
  folder_.Write("prune.json", R"({"1": [2]})");
  const absl::Status status = OpenModels(settings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model b: " + folder_.File("prune.json") + ": layer 1: expected heads 0..1; got 2");
}

TEST_F(OverlayTest, RefusesToLeaveOutHeadsOfWhatCannotBePruned) {
  Settings settings = SettingsWith({MakeTensor("embeddings.LayerNorm.bias", {4})});
  folder_.Write("prune.json", R"({"0": [0]})");
  settings.models[0].prune_file = folder_.File("prune.json");
  settings.models[1].source = "worked-example";
  EXPECT_EQ(OpenModels(settings).status().message(),
            "model b: " + folder_.File("prune.json") +
                ": cannot prune heads of this model: it has no output projection, so its heads are "
                "columns of its output");
}

TEST_F(OverlayTest, NamesTheModelInARefusal) {
  const auto opened =
      OpenModels(SettingsWith({MakeTensor("encoder.layer.0.output.dense.bias", {4})}));
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), testing::StartsWith("model b: "));
}

// Two nodes that share the first CPU.
ThreadPlan OnTwoNodes() {
  const CpuList cpu = {AllowedCpus().front()};
  return {.instances = 2,
          .threads_per_instance = 1,
          .nodes = {{0, cpu}, {1, cpu}},
          .copy_of_instance = {0, 1}};
}

std::vector<float> LastHiddenStates(const std::shared_ptr<const Encoder>& encoder) {
  constexpr int32_t kTokens = 5;
  EncoderRun run(encoder, kTokens, 1);
  const MatrixView<float> input = run.input();
  for (int32_t i = 0; i < kTokens; ++i) {
    for (int64_t c = 0; c < input.cols; ++c) input.row(i)[c] = static_cast<float>(i - c);
  }
  RunObserver nobody;
  const auto result =
      run.Encode(0, encoder->description().layers,
                 {.cu_seqlens = std::vector<int32_t>{0, kTokens}, .bias = {}}, nobody);
  std::vector<float> values;
  for (int32_t i = 0; i < kTokens; ++i) {
    values.insert(values.end(), result->row(i), result->row(i) + result->cols);
  }
  return values;
}

// On each node, an overlay shares with the copy of its base on that node.
TEST_F(OverlayTest, IsThereOnEachNode) {
  Settings settings = SettingsWith({MakeTensor("encoder.layer.1.output.LayerNorm.weight", {4})});
  const CpuList before = AllowedCpus();
  const auto models = LoadModels(*OpenModels(settings), OnTwoNodes());
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ(AllowedCpus(), before);
  for (const char* name : {"a", "b"}) {
    const ServedModel& model = *models->at(name);
    ASSERT_EQ(model.further_copies.size(), 1u);
    EXPECT_NE(model.copy(0), model.copy(1));
    EXPECT_EQ(model.copy(0)->weight_bytes(), model.copy(1)->weight_bytes());
    EXPECT_EQ(LastHiddenStates(model.copy(0)), LastHiddenStates(model.copy(1)));
  }
}

TEST(OpenModelsTest, NamesTheFormOfARepositoryOfTheHub) {
  const auto refusal = [](const std::string& source) {
    Settings settings;
    settings.models.push_back(*ParseModelSetting("m=" + source));
    return std::string(OpenModels(settings).status().message());
  };
  EXPECT_THAT(refusal("BAAI/bge-small-en-v1.5"),
              testing::EndsWith("; to serve that Hub repository: --model "
                                "m=hf:BAAI/bge-small-en-v1.5"));
  EXPECT_THAT(refusal("/nowhere/model"), testing::Not(testing::HasSubstr("hf:")));
}

TEST(OpenModelsTest, OpensTheFolderOfAPulledModel) {
  TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
  Settings settings;
  settings.models.push_back(*ParseModelSetting("m=hf:org/tiny"));
  settings.models[0].pulled_folder = folder.path();
  settings.models[0].origin = {"org/tiny", std::string(40, 'c')};
  absl::StatusOr<std::vector<OpenedModel>> opened = OpenModels(settings);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::StatusOr<ServedModels> models = LoadModels(*std::move(opened));
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ(models->at("m")->origin, settings.models[0].origin);
}

TEST(PredictMemoryTest, CountsACopyForEachNode) {
  const auto models = Opened({"synthetic:minilm-l6"});
  const Settings settings;
  const ThreadPlan one = {.instances = 2, .threads_per_instance = 1};
  const auto shared = PredictMemory(models, settings, one);
  const auto copied = PredictMemory(models, settings, OnTwoNodes());
  EXPECT_EQ(copied->weights, 2 * shared->weights);
  EXPECT_EQ(copied->activations, shared->activations);
  const MemoryLimit between = {shared->total(), "of the test"};
  EXPECT_TRUE(CheckMemory(models, settings, one, between).ok());
  const absl::Status refused = CheckMemory(models, settings, OnTwoNodes(), between);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr(" in 2 copies (--numa), "));
}

TEST(PredictMemoryTest, SetsTheCacheAside) {
  const auto models = Opened({"synthetic:tiny"});
  Settings settings;
  const ThreadPlan plan = {.instances = 1, .threads_per_instance = 1};
  const MemoryNeed without = *PredictMemory(models, settings, plan);
  settings.cache_bytes = int64_t{300} << 20;
  const MemoryNeed with = *PredictMemory(models, settings, plan);
  EXPECT_EQ(with.total() - without.total(), settings.cache_bytes);
  const MemoryLimit limit = {int64_t{4} << 30, "of the test"};
  EXPECT_EQ(RequestBudget(without, limit) - RequestBudget(with, limit),
            settings.cache_bytes / 5 * 4);
  const MemoryLimit between = {without.total() + (int64_t{299} << 20), "of the test"};
  const absl::Status refused = CheckMemory(models, settings, plan, between);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr(" for gRPC, and 300.0 MiB for --cache-bytes"));
}

// The article counts the weights and biases of BERT-base's 25 norms.
TEST_F(OverlayTest, NeedsTheMemoryOfItsNorms) {
  Settings settings = SettingsWith({});
  settings.models[1].source = "synthetic:bert-base";
  const absl::StatusOr<Checkpoint> base = OpenCheckpoint("synthetic:bert-base", {});
  std::vector<TestTensor> norms;
  for (const WeightSpec& spec : ListWeights(base->description)) {
    if (spec.name.find("norm.") != spec.name.npos)
      norms.push_back(MakeTensor(spec.name, spec.shape));
  }
  folder_.Write("norms.safetensors", MakeSafetensors(norms));
  const auto both = OpenModels(settings);
  ASSERT_TRUE(both.ok()) << both.status();
  const auto weights = [&](absl::Span<const OpenedModel> models) {
    return PredictMemory(models, settings, {.instances = 1, .threads_per_instance = 1})->weights;
  };
  EXPECT_EQ(weights(*both) - weights(absl::MakeSpan(*both).first(1)), 38400 * 4);
}

}  // namespace model_loading_test
}  // namespace attendant::server
