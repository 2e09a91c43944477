#include "engine/checkpoint/embedded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/shape.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace embedded_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Checkpoint Open(const std::string& source) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(source, {});
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return *std::move(checkpoint);
}

// Returns the FNV-1a hash of the bits of the floats.
uint64_t Hash(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

int64_t Parameters(const Checkpoint& checkpoint) {
  int64_t count = 0;
  for (const WeightSpec& spec : ListWeights(checkpoint.description)) {
    if (checkpoint.weights->Has(spec.name)) count += *ElementCount(spec.shape);
  }
  return count;
}

TEST(WorkedExample, IsTheArticle) {
  Checkpoint checkpoint = Open("worked-example");
  const ModelDescription& description = checkpoint.description;
  EXPECT_EQ(description.family, "worked-example");
  EXPECT_EQ(description.layers, 1);
  EXPECT_EQ(description.layer.hidden_size, 4);
  EXPECT_EQ(description.layer.attention.heads, 1);
  EXPECT_EQ(description.layer.context_width(), 3);
  EXPECT_EQ(description.layer.attention.score_scale, 1.0f);
  EXPECT_EQ(description.layer.norms.placement, NormPlacement::kNone);
  EXPECT_FALSE(description.layer.attention.has_output_projection);
  EXPECT_FALSE(description.embeddings.has_value());
  EXPECT_FALSE(checkpoint.weights->Has("layer.0.query.bias"));

  // The keys, queries and values that the article prints for its three inputs.
  const float inputs[3][4] = {{1, 0, 1, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};
  const auto project = [&](const std::string& name) {
    const std::vector<float> weight = ReadTensor(checkpoint, "layer.0." + name + ".weight");
    std::vector<float> rows;
    for (const auto& input : inputs) {
      for (int out = 0; out < 3; ++out) {
        float sum = 0;
        for (int in = 0; in < 4; ++in) sum += input[in] * weight[out * 4 + in];
        rows.push_back(sum);
      }
    }
    return rows;
  };
  EXPECT_THAT(project("key"), ElementsAre(0, 1, 1, 4, 4, 0, 2, 3, 1));
  EXPECT_THAT(project("query"), ElementsAre(1, 0, 2, 2, 2, 2, 2, 1, 3));
  EXPECT_THAT(project("value"), ElementsAre(1, 2, 3, 2, 8, 0, 2, 6, 3));
}

TEST(WorkedExample, RefusesOtherTensorsAndSizes) {
  Checkpoint checkpoint = OpenWorkedExample();
  std::vector<float> values(11);
  const absl::Status size = checkpoint.weights->Read("layer.0.key.weight", absl::MakeSpan(values));
  EXPECT_EQ(size.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(size.ToString(), HasSubstr("'layer.0.key.weight' has 12 elements, the target 11"));
  const absl::Status name = checkpoint.weights->Read("layer.1.key.weight", absl::MakeSpan(values));
  EXPECT_EQ(name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(name.ToString(), HasSubstr("no tensor 'layer.1.key.weight'"));
}

TEST(Synthetic, HasTheTrueShapes) {
  // The published parameter counts: of the encoder alone for ViT, and without the unused pooler for
  // MiniLM.
  const std::vector<std::pair<std::string, int64_t>> counts = {
      {"bert-base", 109'482'240},
      {"bert-large", 335'141'888},
      {"minilm-l6", 22'565'376},
      {"minilm-l12", 33'212'160},
      {"distilbert", 66'362'880},
      {"roberta-base", 124'055'040},
      {"vit-base", 85'056'000},
      {"qwen3-0.6b", 595'776'512},
      {"embeddinggemma-300m", 307'581'696},
      {"nomic-v2-moe", 475'292'928},
      {"tiny", 22'464},
      {"words", 7'120},
  };
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    names.push_back(name);
    EXPECT_EQ(Parameters(Open("synthetic:" + name)), count) << name;
  }
  EXPECT_EQ(SyntheticModelNames(), names);
}

TEST(Synthetic, DescribesEachModelsRules) {
  const ModelDescription bert = Open("synthetic:bert-base").description;
  EXPECT_EQ(bert.layer.norms.placement, NormPlacement::kPost);
  EXPECT_EQ(bert.layer.norms.epsilon, 1e-12f);
  EXPECT_EQ(bert.layer.attention.score_scale, 0.125f);
  EXPECT_EQ(bert.embeddings->longest_sequence(), 512);
  EXPECT_EQ(bert.pooling->dense_activation, Activation::kTanh);
  EXPECT_EQ(bert.pooling->width(768), 768);

  const ModelDescription roberta = Open("synthetic:roberta-base").description;
  EXPECT_EQ(roberta.embeddings->position_rule, PositionRule::kCountNotPadding);
  EXPECT_EQ(roberta.embeddings->first_position, 2);
  EXPECT_EQ(roberta.embeddings->longest_sequence(), 512);
  EXPECT_EQ(roberta.layer.norms.epsilon, 1e-5f);

  const ModelDescription qwen3 = Open("synthetic:qwen3-0.6b").description;
  EXPECT_EQ(qwen3.layer.attention.key_value_heads, 8);
  EXPECT_TRUE(qwen3.layer.attention.causal);
  EXPECT_EQ(qwen3.layer.attention.query_key_norms, QueryKeyNorms::kEachHead);
  EXPECT_EQ(qwen3.layer.relative_positions.rotary.frequencies, RotaryFrequencies(128, 1e6f));
  EXPECT_EQ(qwen3.embeddings->longest_sequence(), 0);
  EXPECT_EQ(qwen3.pooling->modes, std::vector{PoolingMode::kLastToken});
  EXPECT_TRUE(qwen3.pooling->normalize);

  const ModelDescription gemma = Open("synthetic:embeddinggemma-300m").description;
  EXPECT_EQ(gemma.layer_at(4).attention.window, 256);
  EXPECT_EQ(gemma.layer_at(4).relative_positions.rotary.frequencies, RotaryFrequencies(256, 1e4f));
  EXPECT_EQ(gemma.layer_at(5).attention.window, 0);
  EXPECT_EQ(gemma.layer_at(5).relative_positions.rotary.frequencies, RotaryFrequencies(256, 1e6f));
  EXPECT_EQ(gemma.layer.norms.placement, NormPlacement::kSandwich);
  EXPECT_FALSE(gemma.layer.attention.causal);
  EXPECT_EQ(gemma.pooling->width(768), 768);

  const ModelDescription vit = Open("synthetic:vit-base").description;
  EXPECT_EQ(vit.layer.norms.placement, NormPlacement::kPre);
  EXPECT_TRUE(vit.has_exit_norm);
  EXPECT_FALSE(vit.embeddings.has_value());

  const ModelDescription minilm = Open("synthetic:minilm-l6").description;
  EXPECT_TRUE(minilm.pooling->normalize);
  EXPECT_THAT(minilm.pooling->modes, ElementsAre(PoolingMode::kMean));
}

TEST(Synthetic, HasTheVocabularyOfAModelOfTexts) {
  const Checkpoint words = Open("synthetic:words");
  const std::string& lines = words.tokenization.files.at("vocab.txt");
  EXPECT_THAT(lines, StartsWith("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n') + 1,
            words.description.embeddings->vocabulary);
  EXPECT_TRUE(Open("synthetic:tiny").tokenization.files.empty());
}

TEST(Synthetic, SameBitsOnEveryMachine) {
  Checkpoint tiny = Open("synthetic:tiny@7");
  EXPECT_EQ(Hash(ReadTensor(tiny, "embeddings.word")), 6585181638011896172u);
  EXPECT_EQ(Hash(ReadTensor(tiny, "layer.1.query.weight")), 1155232756337220269u);
  EXPECT_EQ(Hash(ReadTensor(tiny, "layer.0.attention_norm.weight")), 14927222485119004401u);
}

TEST(Synthetic, DependsOnSeedAndName) {
  Checkpoint one = Open("synthetic:tiny@1");
  Checkpoint again = Open("synthetic:tiny@1");
  Checkpoint other = Open("synthetic:tiny@2");
  Checkpoint none = Open("synthetic:tiny");
  Checkpoint zero = Open("synthetic:tiny@0");
  EXPECT_EQ(ReadTensor(one, "layer.0.key.weight"), ReadTensor(again, "layer.0.key.weight"));
  EXPECT_NE(ReadTensor(one, "layer.0.key.weight"), ReadTensor(other, "layer.0.key.weight"));
  EXPECT_NE(ReadTensor(one, "layer.0.key.weight"), ReadTensor(one, "layer.1.key.weight"));
  EXPECT_EQ(ReadTensor(none, "layer.0.key.weight"), ReadTensor(zero, "layer.0.key.weight"));
}

TEST(Synthetic, LooksLikeATrainedModel) {
  Checkpoint checkpoint = Open("synthetic:minilm-l6");
  double sum = 0;
  double squares = 0;
  const std::vector<float> values = ReadTensor(checkpoint, "layer.0.feed_forward_in.weight");
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / count), 0.02, 1e-4);
  for (const float value : ReadTensor(checkpoint, "layer.0.attention_norm.weight"))
    EXPECT_NEAR(value, 1, 0.1);
  for (const float value : ReadTensor(checkpoint, "layer.0.query.bias")) EXPECT_NEAR(value, 0, 0.1);
}

TEST(Synthetic, RefusesUnknownNamesAndSeeds) {
  const absl::Status name = OpenCheckpoint("synthetic:bert-tiny", {}).status();
  EXPECT_EQ(name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(name.ToString(),
              HasSubstr("no synthetic model 'bert-tiny'; there are bert-base, bert-large"));
  for (const char* seed : {"", "x", "-1", "1.5", "18446744073709551616"}) {
    const absl::Status status = OpenCheckpoint(std::string("synthetic:tiny@") + seed, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << seed;
    EXPECT_THAT(status.ToString(), HasSubstr("got '" + std::string(seed) + "'"));
  }
}

TEST(Synthetic, RefusesOtherTensorsAndSizes) {
  Checkpoint checkpoint = Open("synthetic:tiny");
  std::vector<float> values(3);
  const absl::Status size = checkpoint.weights->Read("layer.0.key.bias", absl::MakeSpan(values));
  EXPECT_EQ(size.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(size.ToString(), HasSubstr("'layer.0.key.bias' has 32 elements, the target 3"));
  EXPECT_EQ(checkpoint.weights->Read("layer.2.key.bias", absl::MakeSpan(values)).code(),
            absl::StatusCode::kNotFound);
}

TEST(Embedded, HasNoFileToDigest) {
  CheckpointOptions options;
  options.weights_sha256 = std::string(64, 'a');
  const absl::Status status = OpenCheckpoint("worked-example", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("worked-example: no weight file"));
}

}  // namespace embedded_test
}  // namespace attendant
