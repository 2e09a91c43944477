// Tests of how the configs of families with rotary positions state base and scaling, with the
// values that the library computes by. tests/families/run compares the vectors.
#include "engine/checkpoint/families/rotary_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/families/model_config.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace rotary_config_test {

using ::testing::HasSubstr;

// Returns the config of a tiny family without these keys, and with those of `more`.
std::string Config(const std::string& family, const std::vector<std::string>& without,
                   const std::string& more) {
  for (const TinyFamily& tiny : TinyFamilies()) {
    if (tiny.name != family) continue;
    Json config = Json::parse(tiny.config);
    for (const std::string& key : without) config.erase(key);
    config.update(Json::parse(more));
    return config.dump();
  }
  ADD_FAILURE() << family;
  return "";
}

absl::StatusOr<ModelConfig> Open(const std::string& config) {
  TempFolder folder;
  folder.Write("config.json", config);
  return ReadModelConfig(folder.path());
}

RelativePositionShape Read(const std::string& config, int64_t layer = 0) {
  const absl::StatusOr<ModelConfig> read = Open(config);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->description.layer_shape(layer).relative_positions
                   : RelativePositionShape();
}

std::string Refusal(const std::string& config) {
  return std::string(Open(config).status().message());
}

std::string ModernBert(const std::string& more, const std::vector<std::string>& without = {}) {
  return Config("modernbert", without, more);
}

TEST(RotaryConfig, ModernBertScalesBothKindsOfLayers) {
  const std::string scaled =
      ModernBert(R"({"rope_scaling": {"rope_type": "linear", "factor": 3.0}})");
  EXPECT_EQ(Read(scaled, 0).rotary_stretch, 3.0f);
  EXPECT_EQ(Read(scaled, 0).rotary_theta, 160000.0f);
  EXPECT_EQ(Read(scaled, 1).rotary_stretch, 3.0f);
  EXPECT_EQ(Read(scaled, 1).rotary_theta, 10000.0f);
  const std::string base = ModernBert(R"({"rope_scaling": {"rope_theta": 60.0}})");
  EXPECT_EQ(Read(base, 0).rotary_theta, 60.0f);
  EXPECT_EQ(Read(base, 1).rotary_theta, 60.0f);
  const std::string nested = ModernBert(R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 90.0},
      "sliding_attention": {"rope_type": "linear", "factor": 2.0}}})");
  EXPECT_EQ(Read(nested, 0).rotary_stretch, 2.0f);
  EXPECT_EQ(Read(nested, 0).rotary_theta, 90.0f);
  EXPECT_EQ(Read(nested, 1).rotary_theta, 10000.0f);
}

TEST(RotaryConfig, ModernBertHasABaseForEachKindByDefault) {
  const std::string config = ModernBert("{}", {"global_rope_theta", "local_rope_theta"});
  EXPECT_EQ(Read(config, 0).rotary_theta, 160000.0f);
  EXPECT_EQ(Read(config, 1).rotary_theta, 10000.0f);
}

TEST(RotaryConfig, ModernBertWithOtherScalingsIsRefused) {
  for (const char* type : {"yarn", "dynamic", "longrope", "llama3", "ntk"}) {
    EXPECT_THAT(
        Refusal(ModernBert(std::string(R"({"rope_scaling": {"factor": 2.0, "rope_type": ")") +
                           type + "\"}}")),
        HasSubstr("rope_type: expected one of default, linear, found '"));
  }
  // The library does not look at "type" there.
  EXPECT_THAT(Refusal(ModernBert(R"({"rope_scaling": {"type": "linear", "factor": 2.0}})")),
              HasSubstr("expected no key but rope_type, rope_theta, factor, "
                        "partial_rotary_factor, original_max_position_embeddings, found 'type'"));
  EXPECT_THAT(Refusal(ModernBert(R"({"rope_parameters": {
                  "full_attention": {"rope_type": "linear", "factor": 2.0},
                  "sliding_attention": {"rope_type": "default"}}})")),
              HasSubstr("expected one factor of rotary positions for all layers, found 2 and 1"));
  EXPECT_THAT(Refusal(ModernBert(R"({"sliding_window": 4})")),
              HasSubstr("sliding_window: expected none, found 4"));
}

TEST(RotaryConfig, ModernBertWithoutTableOfPositionsSaysSoOrNot) {
  EXPECT_EQ(Read(ModernBert(R"({"position_embedding_type": "sans_pos"})")),
            Read(ModernBert(R"({"position_embedding_type": "absolute"})")));
  EXPECT_THAT(Refusal(ModernBert(R"({"position_embedding_type": "alibi"})")),
              HasSubstr("position_embedding_type: expected 'absolute' or 'sans_pos', found"));
  EXPECT_THAT(Refusal(Config("jina_bert", {}, R"({"position_embedding_type": "sans_pos"})")),
              HasSubstr("position_embedding_type: expected 'alibi', found 'sans_pos'"));
}

TEST(RotaryConfig, ParametersForAllLayersHaveOlderKeys) {
  const std::vector<std::pair<std::string, float>> bases = {{"nomic_bert_library", 1000.0f},
                                                            {"gte_library", 160000.0f}};
  for (const auto& [family, base] : bases) {
    const auto config = [&](const std::string& more) {
      return Config(family, {"rope_parameters"}, more);
    };
    EXPECT_EQ(Read(config("{}")).rotary_theta, base);
    EXPECT_EQ(Read(config("{}")).rotary_stretch, 1.0f);
    const RelativePositionShape scaled = Read(
        config(R"({"rope_theta": 50.0, "rope_scaling": {"rope_type": "linear", "factor": 3.0}})"));
    EXPECT_EQ(scaled.rotary_theta, 50.0f);
    EXPECT_EQ(scaled.rotary_stretch, 3.0f);
    EXPECT_EQ(Read(config(R"({"rope_scaling": {"type": "linear", "factor": 3.0}})")).rotary_stretch,
              3.0f);
    EXPECT_THAT(Refusal(config(R"({"rope_scaling": {"rope_type": "yarn", "factor": 3.0}})")),
                HasSubstr("rope_type or type: expected one of default, linear, ntk, found 'yarn'"));
    EXPECT_THAT(Refusal(config(R"({"partial_rotary_factor": 0.5})")),
                HasSubstr("partial_rotary_factor: expected 1, found 0.5"));
    EXPECT_THAT(Refusal(config(R"({"rope_theta": 0})")), HasSubstr("a positive rotary base"));
    EXPECT_THAT(Refusal(config(R"({"rope_theta": -5.0})")), HasSubstr("rope_theta: expected"));
  }
  // The authors' own code has another default.
  EXPECT_EQ(Read(Config("gte", {"rope_theta"}, "{}")).rotary_theta, 10000.0f);
}

}  // namespace rotary_config_test
}  // namespace attendant
