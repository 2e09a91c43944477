// Tests of how the configs of families with rotary positions state base and scaling, with the
// values that the library computes by. tests/families/run compares the vectors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/families/config_parts.h"
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

RotaryShape Read(const std::string& config, int64_t layer = 0) {
  const absl::StatusOr<ModelConfig> read = Open(config);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->description.layer_shape(layer).relative_positions.rotary : RotaryShape();
}

// The rotation of heads of 4 columns, as the tiny ModernBERT has them, or of another width.
RotaryShape Of(float base, float stretch = 1, int64_t width = 4) {
  return {RotaryFrequencies(width, base, stretch)};
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
  EXPECT_EQ(Read(scaled, 0), Of(160000, 3));
  EXPECT_EQ(Read(scaled, 1), Of(10000, 3));
  const std::string base = ModernBert(R"({"rope_scaling": {"rope_theta": 60.0}})");
  EXPECT_EQ(Read(base, 0), Of(60));
  EXPECT_EQ(Read(base, 1), Of(60));
  const std::string nested = ModernBert(R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 90.0},
      "sliding_attention": {"rope_type": "default"}}})");
  EXPECT_EQ(Read(nested, 0), Of(90, 2));
  EXPECT_EQ(Read(nested, 1), Of(10000));
}

TEST(RotaryConfig, ModernBertHasABaseForEachKindByDefault) {
  const std::string config = ModernBert("{}", {"global_rope_theta", "local_rope_theta"});
  EXPECT_EQ(Read(config, 0), Of(160000));
  EXPECT_EQ(Read(config, 1), Of(10000));
}

TEST(RotaryConfig, ModernBertWithUnknownScalingsIsRefused) {
  for (const char* type : {"ntk", "proportional"}) {
    EXPECT_THAT(
        Refusal(ModernBert(std::string(R"({"rope_scaling": {"factor": 2.0, "rope_type": ")") +
                           type + "\"}}")),
        HasSubstr("rope_type: expected one of default, linear, llama3, yarn; got '"));
  }
  // The library does not look at "type" there.
  EXPECT_THAT(Refusal(ModernBert(R"({"rope_scaling": {"type": "linear", "factor": 2.0}})")),
              HasSubstr("rope_scaling: type has no effect without rope_type"));
  EXPECT_THAT(Refusal(ModernBert(R"({"rope_scaling": {"rope_type": "linear", "mixed_b": 2.0}})")),
              HasSubstr("truncate, type; got 'mixed_b'"));
  EXPECT_THAT(
      Refusal(ModernBert(R"({"sliding_window": 4})")),
      HasSubstr(
          "sliding_window: expected null (local_attention sets the width of the window); got 4"));
}

TEST(RotaryConfig, AnglesThatGrowWithTheLongestSequenceAreRefused) {
  for (const char* type : {"dynamic", "longrope"}) {
    const std::string scaling = std::string(R"({"factor": 2.0, "rope_type": ")") + type + "\"}";
    const std::string why =
        absl::StrCat("rope_type: '", type, "' not supported: its angles grow with the longest ",
                     "sequence of a batch, so that a response would depend on other requests");
    EXPECT_THAT(Refusal(ModernBert("{\"rope_scaling\": " + scaling + "}")), HasSubstr(why));
    EXPECT_THAT(Refusal(Config("gte_library", {}, "{\"rope_scaling\": " + scaling + "}")),
                HasSubstr(why));
  }
}

// The tiny library's NomicBERT with heads of 16 columns, from which the values below come:
// NomicBertRotaryEmbedding(NomicBertConfig(hidden_size=64, num_attention_heads=4,
// max_position_embeddings=4096, rope_parameters=…)).inv_freq and .attention_scaling of transformers
// 5.23.
RotaryShape ReadWide(const std::string& parameters, const std::string& more = "{}") {
  Json config = Json::parse(Config("nomic_bert_library", {"rope_parameters"}, more));
  config["head_dim"] = 16;
  config["max_position_embeddings"] = 4096;
  config["rope_parameters"] = Json::parse(parameters);
  return Read(config.dump());
}

void ExpectRotation(const RotaryShape& read, std::vector<double> frequencies, float amplitude) {
  ASSERT_EQ(read.frequencies.size(), frequencies.size());
  for (size_t j = 0; j < frequencies.size(); ++j) {
    EXPECT_NEAR(read.frequencies[j] / frequencies[j], 1, 2e-6) << j;
  }
  EXPECT_FLOAT_EQ(read.amplitude, amplitude);
}

constexpr char kYarn[] = R"("rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0)";

std::string Yarn(const std::string& more = "") {
  return std::string("{") + kYarn + R"(, "original_max_position_embeddings": 1024)" + more + "}";
}

const std::vector<double>& YarnFrequencies() {
  static const auto& frequencies = *new std::vector<double>(
      {1.0, 0.3162277638912201, 0.08125000447034836, 0.019764237105846405, 0.0043750000186264515,
       0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-05});
  return frequencies;
}

TEST(RotaryConfig, YarnScalesSlowPairsAndHasAnAmplitude) {
  ExpectRotation(ReadWide(Yarn()), YarnFrequencies(), 1.138629436111989f);
  ExpectRotation(ReadWide(Yarn(R"(, "attention_factor": 1.5)")), YarnFrequencies(), 1.5f);
  ExpectRotation(ReadWide(Yarn(R"(, "mscale": 0.7, "mscale_all_dim": 0.3)")), YarnFrequencies(),
                 1.0532376815143234f);
  ExpectRotation(
      ReadWide(Yarn(R"(, "truncate": false, "beta_fast": 16, "beta_slow": 2)")),
      {1.0, 0.3162277638912201, 0.10000000149011612, 0.01870180480182171, 0.0024999999441206455,
       0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-05},
      1.138629436111989f);
}

TEST(RotaryConfig, YarnTakesLengthsFromTheConfig) {
  // The factor is the ratio of 4096 to 1024.
  Json ratio = Json::parse(Yarn());
  ratio["factor"] = nullptr;
  ExpectRotation(ReadWide(ratio.dump()), YarnFrequencies(), 1.138629436111989f);
  const std::string without = std::string("{") + kYarn + "}";
  EXPECT_EQ(ReadWide(without, R"({"original_max_position_embeddings": 1024})"), ReadWide(Yarn()));
  EXPECT_EQ(ReadWide(without),
            ReadWide(std::string("{") + kYarn + R"(, "original_max_position_embeddings": 4096})"));
}

TEST(RotaryConfig, Llama3ScalesSlowPairs) {
  ExpectRotation(
      ReadWide(R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                   "high_freq_factor": 4.0, "original_max_position_embeddings": 512,
                   "rope_theta": 500000.0})"),
      {1.0, 0.193922758102417, 0.02734413370490074, 0.0009115831344388425, 0.00017677668074611574,
       3.428102354519069e-05, 6.647869668086059e-06, 1.289173155782919e-06},
      1);
}

// The library looks for "truncate" beside the kinds of layers, where no file has it.
TEST(RotaryConfig, ModernBertWithYarnTruncates) {
  const auto scaled = [](const std::string& more) {
    return ModernBert("{\"max_position_embeddings\": 64, \"rope_scaling\": " + Yarn(more) + "}");
  };
  EXPECT_EQ(Read(scaled(R"(, "truncate": false)")), Read(scaled("")));
  EXPECT_EQ(Read(scaled(""), 1), Read(scaled(""), 0));  // both have the base of the scaling
  EXPECT_FLOAT_EQ(Read(scaled("")).amplitude, 1.138629436111989f);
}

TEST(RotaryConfig, ParametersThatCannotBeAreRefused) {
  const auto refusal = [](const std::string& parameters) {
    return Refusal(Config("nomic_bert_library", {}, "{\"rope_parameters\": {" + parameters + "}}"));
  };
  EXPECT_THAT(
      refusal(R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 512)"),
      HasSubstr("low_freq_factor: expected a positive number below high_freq_factor; got 4 and 4"));
  EXPECT_THAT(refusal(R"("rope_type": "llama3", "factor": 8.0)"),
              HasSubstr("low_freq_factor: missing; expected a number in 0..10000"));
  EXPECT_THAT(refusal(R"("rope_type": "yarn", "factor": 8.0, "rope_theta": 1.0)"),
              HasSubstr("rope_theta: expected more than 1 for yarn; got 1"));
  EXPECT_THAT(refusal(R"("rope_type": "yarn")"),
              HasSubstr("factor: missing; expected a number in 0..10000"));
}

TEST(RotaryConfig, ModernBertWithoutTableOfPositionsSaysSoOrNot) {
  EXPECT_EQ(Read(ModernBert(R"({"position_embedding_type": "sans_pos"})")),
            Read(ModernBert(R"({"position_embedding_type": "absolute"})")));
  EXPECT_THAT(Refusal(ModernBert(R"({"position_embedding_type": "alibi"})")),
              HasSubstr("position_embedding_type: expected 'absolute' or 'sans_pos'; got"));
  EXPECT_THAT(Refusal(Config("jina_bert", {}, R"({"position_embedding_type": "sans_pos"})")),
              HasSubstr("position_embedding_type: expected 'alibi'; got 'sans_pos'"));
}

TEST(RotaryConfig, ParametersForAllLayersHaveOlderKeys) {
  const std::vector<std::pair<std::string, float>> bases = {{"nomic_bert_library", 1000.0f},
                                                            {"gte_library", 160000.0f}};
  for (const auto& [family, base] : bases) {
    const auto config = [&family = family](const std::string& more) {
      return Config(family, {"rope_parameters"}, more);
    };
    const int64_t width = Read(config("{}")).width();
    EXPECT_EQ(Read(config("{}")), Of(base, 1, width));
    // The older key replaces the newer one.
    EXPECT_EQ(Read(config(R"({"rope_theta": 50.0, "rope_parameters": {"rope_theta": 7.0},
                              "rope_scaling": {"rope_type": "linear", "factor": 3.0}})")),
              Of(50, 3, width));
    EXPECT_EQ(Read(config(R"({"rope_scaling": {"type": "linear", "factor": 3.0}})")),
              Of(base, 3, width));
    EXPECT_THAT(
        Refusal(config(R"({"rope_scaling": {"rope_type": "su", "factor": 3.0}})")),
        HasSubstr("rope_type: expected one of default, linear, llama3, yarn, ntk; got 'su'"));
    EXPECT_THAT(Refusal(config(R"({"partial_rotary_factor": 0.5})")),
                HasSubstr("partial_rotary_factor: expected 1; got 0.5"));
    EXPECT_THAT(Refusal(config(R"({"rope_theta": 0})")),
                HasSubstr("rope_theta: expected a positive number"));
    EXPECT_THAT(Refusal(config(R"({"rope_theta": -5.0})")), HasSubstr("rope_theta: expected"));
  }
  // The authors' own code has another default.
  EXPECT_EQ(Read(Config("gte", {"rope_theta"}, "{}")), Of(10000));
}

}  // namespace rotary_config_test
}  // namespace attendant
