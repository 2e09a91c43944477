#include "server/model_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace {

std::vector<OpenedModel> Opened(const std::vector<std::string>& sources) {
  Settings settings;
  for (const std::string& source : sources) settings.models.push_back(*ParseModelSetting("m=" + source));
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

// A base and norms of it that are `scale` times as large.
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

TEST_F(OverlayTest, NamesTheModelInARefusal) {
  const auto opened =
      OpenModels(SettingsWith({MakeTensor("encoder.layer.0.output.dense.bias", {4})}));
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), testing::StartsWith("model b: "));
}

// What the article counts: weights and biases of BERT-base's 25 norms.
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

}  // namespace
}  // namespace attendant::server
