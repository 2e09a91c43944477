// Tests of every family: its config leads to the right description, and each of its tensors to the
// right weight.
#include "engine/checkpoint/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/shape.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/families/model_config.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace families_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TinyFamily Tiny(const std::string& name) {
  for (TinyFamily& family : TinyFamilies()) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << "no family " << name;
  return {};
}

TinyFamily With(TinyFamily family, const std::string& from, const std::string& to) {
  EXPECT_THAT(family.config, HasSubstr(from));
  family.config = absl::StrReplaceAll(family.config, {{from, to}});
  return family;
}

absl::StatusOr<Checkpoint> Open(const std::string& config, const std::vector<TestTensor>& tensors) {
  TempFolder folder;
  folder.Write("config.json", config);
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  return OpenCheckpoint(folder.path(), {});
}

ModelDescription Describe(const TinyFamily& family) {
  const absl::StatusOr<Checkpoint> checkpoint = Open(family.config, TensorsOf(family));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? checkpoint->description : ModelDescription();
}

std::string Refusal(const std::string& config, const std::vector<TestTensor>& tensors = {}) {
  const absl::Status status = Open(config, tensors).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// Whether a weight of the model is not in the files.
bool ComputesWeight(const TinyFamily& family) {
  return !family.computed.empty() &&
         std::none_of(family.weights.begin(), family.weights.end(),
                      [&](const WeightName& w) { return w.canonical == family.computed; });
}

// Returns the part of a whole tensor's values that makes a weight of this shape.
std::vector<float> PartOf(const std::vector<float>& whole, const WeightName& weight,
                          const std::vector<int64_t>& shape) {
  constexpr int64_t kHeads = 2;
  const int64_t units = weight.layout == Layout::kEachHead ? kHeads : 1;
  const int64_t size = static_cast<int64_t>(whole.size()) / weight.count / units;
  std::vector<float> part;
  for (int64_t unit = 0; unit < units; ++unit) {
    const auto begin = whole.begin() + (unit * weight.count + weight.index) * size;
    part.insert(part.end(), begin, begin + size);
  }
  if (weight.layout != Layout::kTransposed) return part;
  std::vector<float> transposed;
  for (int64_t i = 0; i < size; ++i) {
    transposed.push_back(part[i % shape[1] * shape[0] + i / shape[1]]);
  }
  return transposed;
}

class FamiliesTest : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(FamiliesTest, FindEveryWeight) {
  const TinyFamily& family = GetParam();
  TempFolder folder;
  WriteFamily(folder, family);
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->unused_tensors, SizeIs(family.others.size()));
  size_t present = 0;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const WeightSpec& spec : ListWeights(checkpoint->description)) {
    present += checkpoint->weights->Has(spec.name);
    shapes[spec.name] = spec.shape;
  }
  EXPECT_EQ(present, family.weights.size() + (ComputesWeight(family) ? 1 : 0));
  for (const WeightName& weight : family.weights) {
    ASSERT_TRUE(checkpoint->weights->Has(weight.canonical)) << weight.canonical;
    const std::vector<float> values = ReadTensor(*checkpoint, weight.canonical);
    const auto size = static_cast<int64_t>(values.size());
    const std::vector<float> whole = TestValues(weight.in_file, size * weight.count);
    EXPECT_EQ(values, PartOf(whole, weight, shapes[weight.canonical])) << weight.canonical;
  }
}

TEST_P(FamiliesTest, MissNoWeight) {
  const TinyFamily& family = GetParam();
  for (const WeightName& weight : family.weights) {
    if (weight.canonical.starts_with("front.")) continue;  // an optional part
    if (weight.canonical == family.computed) continue;
    // Layer 0 tells whether there are biases.
    if (weight.canonical.ends_with(".bias") && !weight.canonical.starts_with("layer.1.")) continue;
    std::vector<TestTensor> tensors = TensorsOf(family);
    std::erase_if(tensors, [&](const TestTensor& t) { return t.name == weight.in_file; });
    if (weight.canonical.starts_with("pooling.")) continue;  // without it the model has no pooler
    EXPECT_THAT(Refusal(family.config, tensors),
                AllOf(HasSubstr(weight.in_file), HasSubstr("missing; expected ")));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, FamiliesTest, ::testing::ValuesIn(TinyFamilies()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Families, AlbertSharesLayersByGroups) {
  const ModelDescription model = Describe(Tiny("albert"));
  EXPECT_EQ(model.layers, 5);
  EXPECT_THAT(model.layer_map, ElementsAre(0, 0, 0, 1, 1));  // floor(i groups / layers)
  EXPECT_EQ(model.weight_sets(), 2);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kGeluTanh);
  EXPECT_EQ(model.embeddings->width, 6);
  EXPECT_EQ(model.pooling->dense_width, 8);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPost);
}

TEST(Families, BigBirdSeesBlocks) {
  const ModelDescription model = Describe(Tiny("big_bird"));
  EXPECT_EQ(model.layer.attention.window, 1);
  EXPECT_EQ(
      model.layer.attention.pattern,
      (AttentionPattern{
          .block = 2, .first_global = 1, .last_global = 1, .first_repeats = 3, .full_up_to = 22}));
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kGeluTanh);
  EXPECT_EQ(model.embeddings->word_scale, 1);
  EXPECT_EQ(model.pooling->dense_width, 8);
}

TEST(Families, BigBirdMayBeFullAndScaleItsWords) {
  const ModelDescription full = Describe(With(Tiny("big_bird"), "block_sparse", "original_full"));
  EXPECT_EQ(full.layer.attention.window, 0);
  EXPECT_EQ(full.layer.attention.pattern, AttentionPattern());
  const ModelDescription scaled = Describe(
      With(Tiny("big_bird"), "\"rescale_embeddings\": false", "\"rescale_embeddings\": true"));
  EXPECT_FLOAT_EQ(scaled.embeddings->word_scale, std::sqrt(8.0f));
}

TEST(Families, BigBirdOfOtherBlocksIsRefused) {
  const TinyFamily family = Tiny("big_bird");
  EXPECT_THAT(Refusal(With(family, "block_sparse", "longformer").config),
              HasSubstr("attention_type: expected one of block_sparse, original_full; got "
                        "'longformer'"));
  EXPECT_THAT(Refusal(With(family, "\"block_size\": 2", "\"block_size\": 0").config),
              HasSubstr("block_size: expected an integer in 1..1048576; got 0"));
}

TEST(Families, MobileBertWorksInABottleneck) {
  const ModelDescription model = Describe(Tiny("mobilebert"));
  EXPECT_EQ(model.layer.hidden_size, 8);
  EXPECT_EQ(model.layer.extras.bottleneck.width, 6);
  EXPECT_EQ(model.layer.attention.key_width, 3);
  EXPECT_TRUE(model.layer.extras.bottleneck.values_from_outside);
  EXPECT_EQ(model.layer.feed_forward.blocks, 3);
  EXPECT_EQ(model.layer.norms.kind, NormKind::kAffine);
  EXPECT_EQ(Describe(With(Tiny("mobilebert"), "no_norm", "layer_norm")).layer.norms.kind,
            NormKind::kLayer);
  EXPECT_EQ(model.layer.norms.epsilon, 1e-12f);
  EXPECT_EQ(model.layer.norms.last_epsilon, 1e-5f);
  EXPECT_EQ(model.embeddings->norm_epsilon, 1e-5f);
  EXPECT_TRUE(model.embeddings->has_neighbours);
  EXPECT_EQ(model.embeddings->width, 5);
}

TEST(Families, MobileBertOfOtherShapesIsRefused) {
  const TinyFamily family = Tiny("mobilebert");
  EXPECT_THAT(Refusal(With(family, "no_norm", "batch_norm").config),
              HasSubstr("normalization_type: expected one of layer_norm, no_norm; got "
                        "'batch_norm'"));
  EXPECT_THAT(Refusal(With(family, "\"key_query_shared_bottleneck\": true",
                           "\"key_query_shared_bottleneck\": false")
                          .config),
              HasSubstr("key_query_shared_bottleneck: expected true without"));
}

TEST(Families, DebertaSaysHowDistancesAreScored) {
  const ModelDescription model = Describe(Tiny("deberta"));
  const RelativePositionShape& relative = model.layer.relative_positions;
  EXPECT_EQ(relative.kind, RelativePositions::kDisentangled);
  EXPECT_EQ(relative.buckets, 4);
  EXPECT_EQ(relative.max_distance, 16);  // -1 in the config means the number of positions
  EXPECT_TRUE(relative.scores_queries && relative.scores_keys);
  EXPECT_TRUE(relative.shares_projections && relative.has_norm);
  EXPECT_FLOAT_EQ(model.layer.attention.score_scale,
                  1 / std::sqrt(12.0f));  // 4 columns, three terms
  EXPECT_EQ(model.embeddings->positions, 0);
  EXPECT_EQ(model.embeddings->token_types, 0);
  EXPECT_TRUE(model.embeddings->norm_is_last);
}

TEST(Families, DebertaMayHaveNoBucketsAndOneTerm) {
  const ModelDescription own = Describe(Tiny("deberta_own_projections"));
  EXPECT_EQ(own.layer.relative_positions.buckets, 0);
  EXPECT_EQ(own.layer.relative_positions.position_rows(), 32);
  EXPECT_EQ(own.embeddings->positions, 16);
  const ModelDescription one = Describe(With(Tiny("deberta"), "p2c|c2p", "p2c"));
  EXPECT_FALSE(one.layer.relative_positions.scores_queries);
  EXPECT_FLOAT_EQ(one.layer.attention.score_scale, 1 / std::sqrt(8.0f));
}

TEST(Families, DebertaMayConvolveAlongsideItsFirstLayer) {
  const ModelDescription model = Describe(Tiny("deberta_convolution"));
  const ConvolutionShape expected = {.taps = 5, .groups = 2, .activation = Activation::kGelu};
  EXPECT_EQ(model.layer_at(0).extras.convolution, expected);
  EXPECT_EQ(model.layer_at(1).extras.convolution, ConvolutionShape());
  // The defaults of the library's code, for fields that the config does not have.
  const TinyFamily plain =
      With(Tiny("deberta_convolution"), ", \"conv_groups\": 2, \"conv_act\": \"gelu\"", "");
  const ConvolutionShape by_default = {.taps = 5, .groups = 1, .activation = Activation::kTanh};
  EXPECT_EQ(Describe(plain).layer_at(0).extras.convolution, by_default);
  for (const char* none : {"0", "-1", "null"}) {
    const TinyFamily without =
        With(Tiny("deberta"), "\"share_att_key\": true",
             absl::StrCat("\"share_att_key\": true, \"conv_kernel_size\": ", none));
    EXPECT_TRUE(Describe(without).layer_shapes.empty());
  }
}

TEST(Families, DebertaWithoutRelativeAttentionStillScalesForIt) {
  TinyFamily family =
      With(Tiny("deberta"), "\"relative_attention\": true", "\"relative_attention\": false");
  std::vector<TestTensor> tensors = TensorsOf(Tiny("deberta"));
  std::erase_if(tensors, [](const TestTensor& tensor) {
    return tensor.name.starts_with("deberta.encoder.LayerNorm") ||
           tensor.name.starts_with("deberta.encoder.rel_");
  });
  const absl::StatusOr<Checkpoint> checkpoint = Open(family.config, tensors);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.layer.relative_positions.kind, RelativePositions::kNone);
  EXPECT_FLOAT_EQ(checkpoint->description.layer.attention.score_scale, 1 / std::sqrt(12.0f));
}

TEST(Families, DebertaOfOtherKindsIsRefused) {
  const TinyFamily family = Tiny("deberta");
  const auto refusal = [&](const char* from, const char* to) {
    return Refusal(With(family, from, to).config);
  };
  EXPECT_THAT(refusal("\"share_att_key\": true", "\"conv_kernel_size\": 4"),
              HasSubstr("expected a convolution with an odd kernel size in groups that divide the "
                        "hidden size 8; got 4 in 1 groups"));
  EXPECT_THAT(refusal("\"share_att_key\": true", "\"conv_kernel_size\": 3, \"conv_groups\": 3"),
              HasSubstr("the hidden size 8; got 3 in 3 groups"));
  EXPECT_THAT(refusal("\"share_att_key\": true", "\"conv_kernel_size\": 3, \"conv_act\": 1"),
              HasSubstr("conv_act: expected one of"));
  EXPECT_THAT(refusal("p2c|c2p", "p2c|p2p"),
              HasSubstr("pos_att_type: expected 'c2p', 'p2c' or both; got 'p2p'"));
  EXPECT_THAT(refusal("\"p2c|c2p\"", "[\"p2c\", 2]"),
              HasSubstr("pos_att_type: expected words; got a list"));
  EXPECT_THAT(refusal("\"layer_norm\"", "\"batch_norm\""),
              HasSubstr("norm_rel_ebd: expected 'layer_norm' or 'none'; got 'batch_norm'"));
  EXPECT_THAT(
      refusal("\"position_buckets\": 4", "\"position_buckets\": 30"),
      HasSubstr(
          "max_relative_positions: expected more than 16 (position_buckets / 2 + 1); got 16"));
  EXPECT_THAT(refusal("\"position_buckets\": 4", "\"position_buckets\": 1"),
              HasSubstr("position_buckets: expected an integer in 2..65536; got 1"));
}

TEST(Families, AlbertProjectsEmbeddingsOfTheSameWidthToo) {
  const ModelDescription model =
      Describe(With(Tiny("albert"), "\"embedding_size\": 6", "\"embedding_size\": 8"));
  EXPECT_TRUE(model.embeddings->projected(8));
}

TEST(Families, AlbertOfSeveralLayersInAGroupIsRefused) {
  EXPECT_THAT(
      Refusal(With(Tiny("albert"), "\"inner_group_num\": 1", "\"inner_group_num\": 2").config),
      HasSubstr("inner_group_num: expected 1; got 2"));
  EXPECT_THAT(
      Refusal(With(Tiny("albert"), "\"num_hidden_groups\": 2", "\"num_hidden_groups\": 6").config),
      HasSubstr("num_hidden_groups: expected an integer in 1..5; got 6"));
}

TEST(Families, ModernBertAlternatesItsWindows) {
  const ModelDescription model = Describe(Tiny("modernbert"));
  EXPECT_EQ(model.layer_shape(0).attention.window, 0);
  EXPECT_EQ(model.layer_shape(1).attention.window, 3);
  EXPECT_EQ(model.layer_shape(2).attention.window, 0);
  EXPECT_EQ(model.layer_shape(0).relative_positions.rotary.frequencies,
            RotaryFrequencies(4, 160000));
  EXPECT_EQ(model.layer_shape(1).relative_positions.rotary.frequencies,
            RotaryFrequencies(4, 10000));
  EXPECT_FALSE(model.layer_shape(0).norms.has_attention_norm);
  EXPECT_TRUE(model.layer_shape(1).norms.has_attention_norm);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_THAT(
      Refusal(With(Tiny("modernbert"), "\"local_attention\": 6", "\"local_attention\": 1").config),
      HasSubstr("local_attention: expected an integer in 2"));
}

// The form in which the library writes it from version 5 on.
TEST(Families, ModernBertNamesTheKindsOfItsLayers) {
  const std::string kinds =
      "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"], ";
  const std::string thetas =
      "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 500.0, \"rope_type\": "
      "\"default\"}, \"sliding_attention\": {\"rope_theta\": 70.0}}, ";
  const auto with = [&](const std::string& more) {
    return With(Tiny("modernbert"), "\"norm_eps\"", more + "\"norm_eps\"");
  };
  const ModelDescription model = Describe(with(kinds + thetas));
  EXPECT_EQ(model.layer_shape(0).attention.window, 3);
  EXPECT_EQ(model.layer_shape(1).attention.window, 0);
  EXPECT_EQ(model.layer_shape(2).attention.window, 3);
  EXPECT_EQ(model.layer_shape(0).relative_positions.rotary.frequencies, RotaryFrequencies(4, 70));
  EXPECT_EQ(model.layer_shape(1).relative_positions.rotary.frequencies, RotaryFrequencies(4, 500));

  EXPECT_THAT(Refusal(with("\"layer_types\": [\"full_attention\"], ").config),
              HasSubstr("layer_types: expected a list of 3 layers; got"));
  EXPECT_THAT(Refusal(With(with(kinds), "full_attention", "linear_attention").config),
              HasSubstr("layer_types[1]: expected 'full_attention' or 'sliding_attention'"));
  EXPECT_THAT(Refusal(With(with(thetas), "default", "none").config),
              HasSubstr("rope_type: expected one of default, linear, llama3, yarn; got 'none'"));
  EXPECT_THAT(Refusal(with("\"rope_parameters\": {\"rope_theta\": 5.0}, ").config),
              HasSubstr("rope_parameters: expected an object with 'full_attention' and"));
  EXPECT_THAT(Refusal(With(with(thetas), "70.0", "0").config),
              HasSubstr("rope_theta: expected a positive number; got 0"));
}

TEST(Families, JinaBertForCodeHasFurtherNorms) {
  const ModelDescription model = Describe(Tiny("jina_bert_code"));
  EXPECT_EQ(model.layer.attention.query_key_norms, QueryKeyNorms::kAllHeads);
  EXPECT_TRUE(model.layer.extras.has_second_attention_norm);
  EXPECT_EQ(model.layer.relative_positions.kind, RelativePositions::kAlibi);
  EXPECT_EQ(Describe(Tiny("jina_bert")).layer.attention.query_key_norms, QueryKeyNorms::kNone);
  EXPECT_FALSE(Describe(Tiny("jina_bert")).layer.extras.has_second_attention_norm);
}

TEST(Families, NomicBertTurnsAFractionOfEachHead) {
  const ModelDescription model = Describe(Tiny("nomic_bert"));
  const RelativePositionShape& relative = model.layer.relative_positions;
  EXPECT_EQ(relative.kind, RelativePositions::kRotary);
  EXPECT_EQ(relative.rotary.frequencies, RotaryFrequencies(2, 1000));
  EXPECT_EQ(relative.rotary.pairs, RotaryPairs::kHalves);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPost);
  EXPECT_TRUE(model.layer.feed_forward.has_gate);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kSilu);
  EXPECT_EQ(Describe(With(Tiny("nomic_bert"), "interleaved\": false", "interleaved\": true"))
                .layer.relative_positions.rotary.pairs,
            RotaryPairs::kInterleaved);
}

TEST(Families, NomicBertOfOtherKindsIsRefused) {
  EXPECT_THAT(Refusal(With(Tiny("nomic_bert"), "prenorm\": false", "prenorm\": true").config),
              HasSubstr("prenorm: expected false; got true"));
  EXPECT_THAT(Refusal(With(Tiny("nomic_bert"), "0.5", "0.3").config),
              HasSubstr("an even number of rotary columns"));
}

TEST(Families, NomicBertHasExpertsInEverySecondLayer) {
  const ModelDescription model = Describe(Tiny("nomic_bert_experts"));
  EXPECT_EQ(model.layer.feed_forward.mixture, (MixtureShape{3, 2}));
  EXPECT_FALSE(model.layer.feed_forward.has_gate);
  EXPECT_EQ(model.layer.norms.epsilon, 1e-5f);
  ASSERT_THAT(model.layer_shapes, SizeIs(3));
  EXPECT_EQ(model.layer_shapes[0].feed_forward.mixture, MixtureShape());
  EXPECT_EQ(model.layer_shapes[1].feed_forward.mixture, (MixtureShape{3, 2}));
  EXPECT_EQ(model.layer_shapes[2].feed_forward.mixture, MixtureShape());
}

TEST(Families, NomicBertWithoutExpertsIsDense) {
  const TinyFamily none = With(Tiny("nomic_bert"), "\"prenorm\"",
                               "\"num_experts\": 0, \"moe_every_n_layers\": 2, \"moe_top_k\": 2, "
                               "\"prenorm\"");
  EXPECT_EQ(Describe(none), Describe(Tiny("nomic_bert")));
  // Layer 1 is the first one with experts.
  TempFolder folder;
  folder.Write("config.json",
               With(Tiny("nomic_bert_experts"), "\"n_layer\": 3", "\"n_layer\": 1").config);
  const absl::StatusOr<ModelConfig> one = ReadModelConfig(folder.path());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->description.layer.feed_forward.mixture, MixtureShape());
  EXPECT_THAT(one->description.layer_shapes, IsEmpty());
}

TEST(Families, NomicBertOfOtherMixturesIsRefused) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return Refusal(With(Tiny("nomic_bert_experts"), from, to).config);
  };
  EXPECT_THAT(refusal("\"moe_top_k\": 2", "\"moe_top_k\": 4"),
              HasSubstr("moe_top_k: expected an integer in 1..3; got 4"));
  EXPECT_THAT(refusal("\"moe_top_k\": 2,", ""),
              HasSubstr("moe_top_k: missing; expected an integer"));
  EXPECT_THAT(refusal("\"num_experts\": 3", "\"num_experts\": 65"),
              HasSubstr("num_experts: expected an integer in 0..64; got 65"));
  EXPECT_THAT(refusal("\"moe_every_n_layers\": 2", "\"moe_every_n_layers\": 1"),
              HasSubstr("moe_every_n_layers: expected an integer in 2..1024; got 1"));
  EXPECT_THAT(refusal("weights\": false", "weights\": 1"),
              HasSubstr("moe_normalize_expert_weights: expected false; got 1"));
  EXPECT_THAT(
      refusal("choice_router\": false", "choice_router\": true"),
      HasSubstr("expert_choice_router: expected false (tokens choose experts here); got true"));
  EXPECT_THAT(refusal("shared_experts\": 0", "shared_experts\": 1"),
              HasSubstr("num_shared_experts: expected 0; got 1"));
  EXPECT_THAT(refusal("ffn_div\": 1.0", "ffn_div\": 2"), HasSubstr("ffn_div: expected 1; got 2"));
  EXPECT_THAT(refusal("\"gelu\"", "\"swiglu\""),
              HasSubstr("num_experts: expected 0 (experts with a gate are not supported); got 3"));
  EXPECT_THAT(refusal("megablocks", "contrastors"),
              HasSubstr("moe_impl: expected 'megablocks'; got 'contrastors'"));
}

TEST(Families, NomicBertWithAnotherNumberOfExpertsInItsFileIsRefused) {
  const TinyFamily family = Tiny("nomic_bert_experts");
  std::vector<TestTensor> tensors = TensorsOf(family);
  for (TestTensor& tensor : tensors) {
    if (absl::EndsWith(tensor.name, "mlp.w2")) tensor = MakeTensor(tensor.name, {24, 8});
  }
  EXPECT_THAT(Refusal(family.config, tensors),
              HasSubstr("experts.mlp.w2' F32 [24, 8]: expected F32, F16, BF16 or F64 [36, 8]"));
}

TEST(Families, NeoBertIsTwoThirdsAsWideAsItsConfigSays) {
  const ModelDescription model = Describe(Tiny("neobert"));
  EXPECT_EQ(model.layer.feed_forward.width, 16);  // 22 * 2 / 3 = 14, to a multiple of 8
  EXPECT_TRUE(model.layer.feed_forward.has_gate);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kSilu);
  EXPECT_EQ(model.layer.norms.kind, NormKind::kRms);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPre);
  EXPECT_EQ(model.layer.norms.epsilon, 1e-5f);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_FALSE(model.embeddings->has_norm);
  EXPECT_EQ(model.embeddings->positions, 0);
  EXPECT_EQ(model.layer.relative_positions.rotary.pairs, RotaryPairs::kInterleaved);
  EXPECT_EQ(model.layer.relative_positions.rotary.frequencies, RotaryFrequencies(4, 10000));
  EXPECT_FALSE(model.layer.attention.causal);
}

TEST(Families, NeoBertOfOtherKindsIsRefused) {
  const auto refusal = [](const std::string& keys) {
    return Refusal(With(Tiny("neobert"), "\"pad_token_id\"", keys + ", \"pad_token_id\"").config);
  };
  EXPECT_THAT(refusal("\"rms_norm\": false"), HasSubstr("rms_norm: expected true; got false"));
  EXPECT_THAT(refusal("\"rope\": false"), HasSubstr("rope: expected true; got false"));
  EXPECT_THAT(refusal("\"ngpt\": true"), HasSubstr("ngpt: expected false; got true"));
  EXPECT_THAT(refusal("\"hidden_act\": \"gelu\""),
              HasSubstr("hidden_act: expected one of SwiGLU, swiglu; got 'gelu'"));
  const TinyFamily family = Tiny("neobert");
  std::vector<TestTensor> tensors = TensorsOf(family);
  for (TestTensor& tensor : tensors) {
    if (absl::EndsWith(tensor.name, "0.qkv.weight")) tensor = MakeTensor(tensor.name, {16, 8});
  }
  EXPECT_THAT(Refusal(family.config, tensors),
              HasSubstr("0.qkv.weight' F32 [16, 8]: expected F32, F16, BF16 or F64 [24, 8]"));
}

// The rows of queries, keys and values alternate; each weight is named once.
TEST(Families, NeoBertNamesWhatItsTensorsHold) {
  const TinyFamily family = Tiny("neobert");
  const absl::StatusOr<Checkpoint> checkpoint = Open(family.config, TensorsOf(family));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const CheckpointTensor& tensor : checkpoint->tensors) {
    const bool is_qkv = absl::EndsWith(tensor.name, ".qkv.weight");
    EXPECT_EQ(tensor.is_interleaved, is_qkv) << tensor.name;
    if (tensor.name != "model.transformer_encoder.1.qkv.weight") continue;
    EXPECT_THAT(tensor.weights,
                ElementsAre("layer.1.query.weight", "layer.1.key.weight", "layer.1.value.weight"));
  }
}

TEST(Families, GteHasTheGateBehindTheOtherProduct) {
  const ModelDescription model = Describe(Tiny("gte"));
  EXPECT_EQ(model.layer.relative_positions.rotary.frequencies, RotaryFrequencies(4, 160000));
  EXPECT_EQ(model.embeddings->token_types, 0);
  EXPECT_EQ(model.embeddings->positions, 0);
}

TEST(Families, NomicBertOfTheLibraryHasOtherKeys) {
  const ModelDescription model = Describe(Tiny("nomic_bert_library"));
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.layer.feed_forward.width, 12);
  EXPECT_EQ(model.layer.attention.key_width, 6);
  EXPECT_EQ(model.layer.context_width(), 12);
  EXPECT_EQ(model.layer.norms.epsilon, 1e-6f);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kGelu);
  EXPECT_TRUE(model.layer.feed_forward.has_gate);  // with any activation
  EXPECT_EQ(model.layer.relative_positions.rotary.frequencies, RotaryFrequencies(6, 1000));
  EXPECT_TRUE(model.pooling.has_value());
  EXPECT_THAT(Refusal(With(Tiny("nomic_bert_library"), "\"default\"", "\"dynamic\"").config),
              HasSubstr("rope_type: 'dynamic' not supported: its angles grow"));
  EXPECT_THAT(
      Refusal(With(Tiny("nomic_bert_library"), "\"hidden_act\"", "\"n_embd\": 6, \"hidden_act\"")
                  .config),
      HasSubstr("hidden_size or n_embd: expected one value; got 8 and 6"));
}

TEST(Families, NomicBertWithAnglesOfTheLongestSequenceIsRefused) {
  EXPECT_THAT(
      Refusal(With(Tiny("nomic_bert"), "\"prenorm\"", "\"rotary_scaling_factor\": 2.0, \"prenorm\"")
                  .config),
      HasSubstr("rotary_scaling_factor: expected null (its angles grow with the longest sequence "
                "of a batch"));
}

// The base is 160000 for 4 columns: 160000 * 8 and 8^(2 / 4).
TEST(Families, GteScalesItsRotaryPositions) {
  const auto scaled = [](const std::string& scaling) {
    return With(Tiny("gte"), "\"rope_scaling\": null", "\"rope_scaling\": " + scaling);
  };
  EXPECT_EQ(Describe(scaled("{\"type\": \"ntk\", \"factor\": 8.0}"))
                .layer.relative_positions.rotary.frequencies,
            RotaryFrequencies(4, 1280000, std::sqrt(8.0f)));
  const RotaryShape linear = Describe(Tiny("gte_library")).layer.relative_positions.rotary;
  EXPECT_EQ(linear.frequencies, RotaryFrequencies(linear.width(), 500, 4));

  EXPECT_THAT(Refusal(scaled("{\"type\": \"ntk\", \"factor\": 8.0, \"mixed_b\": 0.6}").config),
              HasSubstr("truncate, type; got 'mixed_b'"));
  EXPECT_THAT(Refusal(scaled("{\"type\": \"ntk\"}").config),
              HasSubstr("factor: missing; expected a number in 0..10000"));
  EXPECT_THAT(Refusal(scaled("{\"type\": \"ntk\", \"factor\": 0.5}").config),
              HasSubstr("factor: expected at least 1; got 0.5"));
  EXPECT_THAT(Refusal(scaled("{\"rope_theta\": 0}").config),
              HasSubstr("rope_theta: expected a positive number; got 0"));
  EXPECT_THAT(Refusal(scaled("8").config), HasSubstr("rope_scaling: expected an object; got 8"));
  EXPECT_THAT(Refusal(With(Tiny("gte"), "\"rope\"", "\"absolute\"").config),
              HasSubstr("position_embedding_type: expected 'rope'; got 'absolute'"));
}

TEST(Families, JinaBertIsKnownByItsArchitecture) {
  const ModelDescription model = Describe(Tiny("jina_bert"));
  EXPECT_EQ(model.family, "jina_bert");
  EXPECT_EQ(model.layer.relative_positions.kind, RelativePositions::kAlibi);
  EXPECT_EQ(model.embeddings->positions, 0);
  EXPECT_TRUE(model.layer.feed_forward.has_gate);
  EXPECT_THAT(Refusal(With(Tiny("jina_bert"), "JinaBertForMaskedLM", "BertForMaskedLM").config),
              HasSubstr("position_embedding_type: expected 'absolute'; got 'alibi'"));
  EXPECT_THAT(Refusal(With(Tiny("jina_bert"), "\"geglu\"", "\"original\"").config),
              HasSubstr("feed_forward_type: expected one of geglu, reglu; got 'original'"));
  EXPECT_EQ(
      Describe(With(Tiny("jina_bert"), "\"geglu\"", "\"reglu\"")).layer.feed_forward.activation,
      Activation::kRelu);
}

TEST(Families, RelativeKeysAreRefusedInEveryFamily) {
  for (TinyFamily& family : TinyFamilies()) {
    family.config =
        absl::StrReplaceAll(family.config, {{"\"position_embedding_type\": \"rope\",", ""},
                                            {"\"position_embedding_type\": \"rotary\",", ""},
                                            {"\"position_embedding_type\": \"alibi\",", ""}});
    const std::string config =
        absl::StrReplaceAll(family.config, {{"{\"model_type\"",
                                             "{\"position_embedding_type\": \"relative_key\", "
                                             "\"model_type\""}});
    EXPECT_THAT(Refusal(config), AllOf(HasSubstr("position_embedding_type: expected "),
                                       HasSubstr("got 'relative_key'")));
  }
}

TEST(Families, MpNetCountsPositionsFromTwoWhateverThePadding) {
  for (const char* padding : {"1", "0"}) {
    const ModelDescription model = Describe(
        With(Tiny("mpnet"), "\"pad_token_id\": 1", std::string("\"pad_token_id\": ") + padding));
    EXPECT_EQ(model.embeddings->position_rule, PositionRule::kCountNotPadding);
    EXPECT_EQ(model.embeddings->first_position, 2);
    EXPECT_EQ(model.embeddings->token_types, 0);
    const RelativePositionShape expected = {RelativePositions::kBuckets, 32, 128};
    EXPECT_EQ(model.layer.relative_positions, expected);
    EXPECT_FLOAT_EQ(model.layer.attention.score_scale, 0.5f);
  }
  EXPECT_THAT(Refusal(With(Tiny("mpnet"), "num_buckets\": 32", "num_buckets\": 16").config),
              HasSubstr("relative_attention_num_buckets: expected 32; got 16"));
}

TEST(Families, T5HasHeadsOfTheirOwnWidthAndScoresAsTheyAre) {
  const ModelDescription model = Describe(Tiny("t5"));
  EXPECT_EQ(model.layer.attention.key_width, 3);
  EXPECT_EQ(model.layer.context_width(), 6);
  EXPECT_EQ(model.layer.attention.score_scale, 1.0f);
  EXPECT_EQ(model.layer.norms.kind, NormKind::kRms);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPre);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kRelu);
  EXPECT_FALSE(model.layer.feed_forward.has_gate);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_EQ(model.embeddings->positions, 0);
  EXPECT_EQ(model.embeddings->longest_sequence(), 0);
  EXPECT_FALSE(model.embeddings->has_norm);
  const RelativePositionShape expected = {RelativePositions::kBuckets, 8, 20};
  EXPECT_EQ(model.layer.relative_positions, expected);
}

TEST(Families, T5GatesByTheNameOfItsActivation) {
  EXPECT_TRUE(Describe(Tiny("t5_gated")).layer.feed_forward.has_gate);
  EXPECT_EQ(Describe(Tiny("t5_gated")).layer.feed_forward.activation, Activation::kGeluTanh);
  EXPECT_EQ(
      Describe(With(Tiny("t5_gated"), "gated-gelu", "gated-silu")).layer.feed_forward.activation,
      Activation::kSilu);
  EXPECT_THAT(Refusal(With(Tiny("t5_gated"), "gated-gelu", "gated-tanh").config),
              AllOf(HasSubstr("feed_forward_proj: expected one of relu"), HasSubstr("gated-tanh")));
  // A file that has the name of the gate but not that of the other product is of another kind.
  EXPECT_THAT(Refusal(Tiny("t5").config, TensorsOf(Tiny("t5_gated"))),
              HasSubstr("wi_0.weight' F32 [12, 8]: unexpected in this"));
}

TEST(Families, T5BucketsThatCannotBeAreRefused) {
  EXPECT_THAT(Refusal(With(Tiny("t5"), "num_buckets\": 8", "num_buckets\": 6").config),
              HasSubstr("got 6 buckets up to 20"));
  EXPECT_THAT(Refusal(With(Tiny("t5"), "max_distance\": 20", "max_distance\": 2").config),
              HasSubstr("got 8 buckets up to 2"));
}

TEST(Families, T5EmbeddingsMayHaveTheEncodersName) {
  TinyFamily family = Tiny("t5");
  for (WeightName& weight : family.weights) {
    if (weight.canonical == "embeddings.word") weight.in_file = "encoder.embed_tokens.weight";
  }
  Describe(family);
  // If a file has both tables, such as one converted from a pickle, the library takes this one.
  family.others.push_back(MakeTensor("shared.weight", {10, 8}));
  const TempFolder folder;
  WriteFamily(folder, family);
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"),
            TestValues("encoder.embed_tokens.weight", 80));
}

TEST(Families, VitHasNoEmbeddingsForIds) {
  const ModelDescription model = Describe(Tiny("vit"));
  EXPECT_FALSE(model.embeddings.has_value());
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPre);
  EXPECT_TRUE(model.has_exit_norm);
  const PatchEmbeddingShape expected = {.has_class = true, .positions = 5, .needs_every = true};
  EXPECT_EQ(model.patch_embedding, expected);
  EXPECT_EQ(model.patch_embedding->features(), 4);
}

TEST(Families, VitPoolsWithTheActivationOfItsConfig) {
  TinyFamily family = Tiny("vit");
  family.weights.push_back({"pooling.dense.weight", "vit.pooler.dense.weight"});
  family.weights.push_back({"pooling.dense.bias", "vit.pooler.dense.bias"});
  EXPECT_EQ(Describe(family).pooling->dense_activation, Activation::kTanh);
  const auto with = [&](const std::string& more) {
    return With(family, "{\"model_type\"", "{" + more + ", \"model_type\"");
  };
  EXPECT_EQ(Describe(with("\"pooler_act\": \"relu\"")).pooling->dense_activation,
            Activation::kRelu);
  EXPECT_THAT(Refusal(with("\"pooler_act\": \"mish\"").config),
              AllOf(HasSubstr("pooler_act: expected one of gelu"), HasSubstr("got 'mish'")));
  EXPECT_THAT(Refusal(with("\"pooler_output_size\": 6").config, TensorsOf(family)),
              HasSubstr("pooler.dense.weight"));
}

TEST(Families, Dinov2WidensByARatio) {
  const ModelDescription plain = Describe(Tiny("dinov2"));
  EXPECT_EQ(plain.layer.feed_forward.width, 24);
  EXPECT_TRUE(plain.layer.extras.has_branch_scale);
  EXPECT_FALSE(plain.layer.feed_forward.has_gate);
  const ModelDescription gated = Describe(Tiny("dinov2_swiglu"));
  EXPECT_EQ(gated.layer.feed_forward.width, 16);  // two thirds, rounded to a multiple of eight
  EXPECT_TRUE(gated.layer.feed_forward.has_gate);
  EXPECT_EQ(gated.layer.feed_forward.activation, Activation::kSilu);
}

TEST(Families, WhisperHasAFixedEpsilonAndKeysWithoutBias) {
  const ModelDescription model = Describe(Tiny("whisper"));
  EXPECT_EQ(model.layer.norms.epsilon, 1e-5f);
  EXPECT_TRUE(model.has_exit_norm);
}

TEST(Families, Wav2Vec2HasEitherOrderOfNorms) {
  EXPECT_EQ(Describe(Tiny("wav2vec2")).layer.norms.placement, NormPlacement::kPost);
  EXPECT_FALSE(Describe(Tiny("wav2vec2")).has_exit_norm);
  EXPECT_TRUE(Describe(Tiny("wav2vec2")).patch_embedding->has_norm);
  EXPECT_FALSE(Describe(Tiny("wav2vec2_norm_first")).patch_embedding.has_value());
  EXPECT_EQ(Describe(Tiny("wav2vec2_norm_first")).layer.norms.placement, NormPlacement::kPre);
  EXPECT_TRUE(Describe(Tiny("wav2vec2_norm_first")).has_exit_norm);
}

TEST(Families, NamesOfTensorsAreThoseOfTheModelType) {
  EXPECT_THAT(PlacesInFile(*FindFamily("whisper", {}), "", "embeddings.word"), IsEmpty());
  EXPECT_EQ(FindFamily("", {"T5EncoderModel"})->name, "t5");
  EXPECT_EQ(FindFamily("", {"Dinov2WithRegistersModel"})->name, "dinov2");
}

TEST(Families, OnlyMisspellingsAreNearToAKnownType) {
  EXPECT_EQ(MisspelledModelType("wav2vec"), "wav2vec2");
  EXPECT_EQ(MisspelledModelType("MPNet2"), "mpnet");
  EXPECT_EQ(MisspelledModelType("modern_bert"), "modernbert");
  EXPECT_EQ(MisspelledModelType("robreta"), "roberta");
  EXPECT_EQ(MisspelledModelType("BERT"), "bert");
  for (const char* other :
       {"qwen3_moe", "barthez", "beit", "deberta", "umt5", "xlm-roberta-xl", "bge",
        "gemma3n_vision", "moonshine", "vits", "esmc", "convbert", "pegasus_x", "plbart", ""}) {
    EXPECT_EQ(MisspelledModelType(other), "") << other;
  }
}

TEST(Families, Qwen3HasHeadsOfItsOwnWidthThatShareKeysAndValues) {
  const TinyFamily qwen3 = Tiny("qwen3");
  const ModelDescription model = Describe(qwen3);
  EXPECT_EQ(model.layer.attention.key_value_heads, 1);
  EXPECT_EQ(model.layer.attention.key_width, 6);
  EXPECT_EQ(model.layer.context_width(), 12);
  EXPECT_EQ(model.layer.attention.query_key_norms, QueryKeyNorms::kEachHead);
  EXPECT_TRUE(model.layer.attention.causal);
  EXPECT_EQ(model.layer.attention.window, 0);
  EXPECT_EQ(model.layer.norms.kind, NormKind::kRms);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_FLOAT_EQ(model.layer.attention.score_scale, 1 / std::sqrt(6.0f));
  EXPECT_EQ(Describe(With(qwen3, "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 2"))
                .layer.attention.key_value_heads,
            0);
  TinyFamily three = With(qwen3, "\"num_attention_heads\": 2", "\"num_attention_heads\": 3");
  three = With(three, "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 2");
  EXPECT_THAT(Refusal(three.config),
              HasSubstr("num_key_value_heads: expected a divisor of the 3 query heads; got 2"));
  // Without a width of heads the library takes 128.
  EXPECT_EQ(Describe(With(qwen3, "\"head_dim\": 6, ", "")).layer.attention.key_width, 128);
}

TEST(Families, CausalModelsMayBeBidirectional) {
  const TinyFamily mistral = Tiny("mistral");
  const AttentionBlockShape causal = Describe(mistral).layer.attention;
  EXPECT_TRUE(causal.causal);
  EXPECT_EQ(causal.window, 2);  // beside the query itself
  for (const char* key :
       {"\"is_causal\": false", "\"is_decoder\": false", "\"use_bidirectional_attention\": true"}) {
    const std::string more = absl::StrCat("\"rope_theta\": 10000.0, ", key);
    const ModelDescription model = Describe(With(mistral, "\"rope_theta\": 10000.0", more));
    EXPECT_FALSE(model.layer.attention.causal) << key;
    EXPECT_EQ(model.layer.attention.window, 3) << key;  // to either side
  }
  for (const char* key : {"\"is_causal\": true", "\"is_decoder\": true"}) {
    const std::string more = absl::StrCat("\"rope_theta\": 10000.0, ", key);
    EXPECT_TRUE(Describe(With(mistral, "\"rope_theta\": 10000.0", more)).layer.attention.causal);
  }
  const ModelDescription eurobert = Describe(Tiny("eurobert"));
  EXPECT_FALSE(eurobert.layer.attention.causal);
  EXPECT_THAT(Refusal(With(Tiny("eurobert"), "\"mask_token_id\": 4", "\"is_causal\": true").config),
              HasSubstr("is_causal: expected false (its tokens attend to later tokens); got true"));
}

TEST(Families, CausalWindowsAreInTheLayersThatTheConfigSays) {
  const auto windows = [](const TinyFamily& family) {
    const ModelDescription model = Describe(family);
    std::vector<int64_t> found;
    for (int64_t i = 0; i < model.layers; ++i) found.push_back(model.layer_at(i).attention.window);
    return found;
  };
  const TinyFamily qwen2 = Tiny("qwen2"), mistral = Tiny("mistral");
  EXPECT_THAT(windows(qwen2), ElementsAre(0, 0, 3));
  const std::string first = "\"max_window_layers\": 2";
  const std::string listed =
      "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"]";
  EXPECT_THAT(windows(With(qwen2, first, listed)), ElementsAre(3, 0, 3));
  EXPECT_THAT(windows(With(qwen2, first, "\"max_window_layers\": 0")), ElementsAre(3, 3, 3));
  EXPECT_THAT(windows(With(qwen2, "\"use_sliding_window\": true, ", "")), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(With(qwen2, "\"sliding_window\": 4", "\"sliding_window\": null")),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(mistral), ElementsAre(2, 2, 2));
  EXPECT_THAT(windows(With(mistral, ", \"sliding_window\": 3", "")), ElementsAre(4095, 4095, 4095));
  EXPECT_THAT(windows(With(mistral, "\"sliding_window\": 3", "\"sliding_window\": null")),
              ElementsAre(0, 0, 0));
  TinyFamily without = With(qwen2, first, listed);
  EXPECT_THAT(
      Refusal(
          With(without, "\"use_sliding_window\": true", "\"use_sliding_window\": false").config),
      HasSubstr("sliding_window: missing; layer_types lists layers with a window"));
  EXPECT_THAT(Refusal(With(qwen2, first, "\"layer_types\": [\"sliding_attention\"]").config),
              HasSubstr("layer_types: expected a list of 3 layers"));
  EXPECT_THAT(Refusal(With(qwen2, "\"sliding_window\": 4", "\"sliding_window\": 1").config),
              HasSubstr("sliding_window: expected an integer in 2"));
}

TEST(Families, Gemma3HasNormsOnBothSidesOfItsBranches) {
  const TinyFamily gemma = Tiny("gemma3_text");
  const ModelDescription model = Describe(gemma);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kSandwich);
  EXPECT_EQ(model.layer.norms.kind, NormKind::kRmsPlusOne);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_EQ(model.layer.attention.query_key_norms, QueryKeyNorms::kEachHead);
  EXPECT_FLOAT_EQ(model.layer.attention.score_scale, 0.25f);
  EXPECT_EQ(model.layer.feed_forward.activation, Activation::kGeluTanh);
  EXPECT_EQ(model.embeddings->word_scale, std::sqrt(8.0f));
  // Without that width the library takes 256.
  EXPECT_FLOAT_EQ(
      Describe(With(gemma, "\"query_pre_attn_scalar\": 16,", "")).layer.attention.score_scale,
      0.0625f);
  EXPECT_THAT(
      Refusal(
          With(gemma, "attn_logit_softcapping\": null", "attn_logit_softcapping\": 30.0").config),
      HasSubstr("attn_logit_softcapping: expected null (scores are not capped); got 30.0"));
  EXPECT_THAT(
      Refusal(With(gemma, "\"rope_scaling\"", "\"is_causal\": false, \"rope_scaling\"").config),
      HasSubstr("is_causal: expected true (use_bidirectional_attention decides in this family); "
                "got false"));
}

TEST(Families, Gemma3HasTwoRotationsAndHalvesItsWindow) {
  const TinyFamily gemma = Tiny("gemma3_text");
  const auto expect = [](const TinyFamily& family, std::vector<std::pair<int64_t, float>> layers) {
    const ModelDescription model = Describe(family);
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(model.layer_at(i).attention.window, layers[i].first) << i;
      EXPECT_EQ(model.layer_at(i).relative_positions.rotary.frequencies,
                RotaryFrequencies(6, layers[i].second))
          << i;
    }
  };
  expect(gemma, {{4, 100}, {4, 100}, {0, 10000}});
  // As the library counts the windows of causal models.
  const TinyFamily causal = With(gemma, "attention\": true", "attention\": false");
  expect(causal, {{7, 100}, {7, 100}, {0, 10000}});
  EXPECT_TRUE(Describe(causal).layer.attention.causal);
  const std::string kinds =
      "\"layer_types\": [\"sliding_attention\", \"sliding_attention\", "
      "\"full_attention\"]";
  expect(With(gemma, kinds, "\"sliding_window_pattern\": 2"), {{4, 100}, {0, 10000}, {4, 100}});
  expect(With(gemma, kinds, "\"torch_dtype\": \"float32\""), {{4, 100}, {4, 100}, {4, 100}});
  // Only layers without a window are scaled.
  const ModelDescription scaled =
      Describe(With(gemma, "\"rope_scaling\": null",
                    "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}"));
  EXPECT_EQ(scaled.layer_at(0).relative_positions.rotary.frequencies, RotaryFrequencies(6, 100));
  EXPECT_EQ(scaled.layer_at(2).relative_positions.rotary.frequencies,
            RotaryFrequencies(6, 10000, 8));
}

TEST(Families, BuffersOfOldLlamaFilesAreIgnored) {
  const TinyFamily llama = Tiny("llama");
  std::vector<TestTensor> tensors = TensorsOf(llama);
  tensors.push_back(MakeTensor("model.layers.0.self_attn.rotary_emb.inv_freq", {2}));
  const absl::StatusOr<Checkpoint> checkpoint = Open(llama.config, tensors);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->unused_tensors, ElementsAre("lm_head.weight"));
}

TEST(Families, Qwen3NeedsItsNormsOfQueriesAndKeys) {
  const TinyFamily qwen3 = Tiny("qwen3");
  std::vector<TestTensor> tensors = TensorsOf(qwen3);
  std::erase_if(tensors, [](const TestTensor& t) { return absl::StrContains(t.name, "_norm."); });
  EXPECT_THAT(Refusal(qwen3.config, tensors), HasSubstr("layers.0.self_attn.q_norm.weight"));
}

}  // namespace families_test
}  // namespace attendant
