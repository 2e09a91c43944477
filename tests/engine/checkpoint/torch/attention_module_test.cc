#include "engine/checkpoint/torch/attention_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/checkpoint/described_folder.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace attention_module_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Tensors = std::vector<TestTensor>;

Json Description(const std::string& prefix = "") {
  return {{"module", "attention"},     {"file", "m.safetensors"}, {"num_heads", 2},
          {"weight_layout", "out_in"}, {"query", prefix + "q"},   {"key", prefix + "k"},
          {"value", prefix + "v"}};
}

// E 3, Dk 2, Dv 3.
Tensors ThreeMatrices() {
  return {MakeTensor("q", {4, 3}), MakeTensor("k", {4, 3}), MakeTensor("v", {6, 3})};
}

std::vector<float> Joined(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class AttentionModuleTest : public DescribedFolderTest {
 protected:
  std::vector<float> Weight(const std::string& name) {
    return ReadTensor(checkpoint_, "layer.0." + name);
  }
};

TEST_F(AttentionModuleTest, ReadsMatricesByTheirNames) {
  Load(Description(), ThreeMatrices());
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(checkpoint_.description.family, "attention");
  EXPECT_EQ(layer.hidden_size, 3);
  EXPECT_EQ(layer.attention.heads, 2);
  EXPECT_EQ(layer.attention.key_width, 2);
  EXPECT_EQ(layer.attention.value_width, 3);
  EXPECT_FLOAT_EQ(layer.attention.score_scale, 0.70710678f);
  EXPECT_FALSE(layer.attention.has_output_projection);
  EXPECT_EQ(layer.norms.placement, NormPlacement::kNone);
  EXPECT_EQ(Weight("query.weight"), TestValues("q", 12));
  EXPECT_EQ(Weight("value.weight"), TestValues("v", 18));
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.query.bias"));
}

TEST_F(AttentionModuleTest, ReadsLinearLayersWithBias) {
  Tensors tensors;
  for (const char* name : {"a.q", "a.k", "a.v", "a.o"}) {
    tensors.push_back(MakeTensor(std::string(name) + ".weight", {4, 4}));
    tensors.push_back(MakeTensor(std::string(name) + ".bias", {4}));
  }
  Json description = Description("a.");
  description["output"] = "a.o";
  description["score_scale"] = 2;
  Load(description, tensors);
  EXPECT_TRUE(checkpoint_.description.layer.attention.has_output_projection);
  EXPECT_EQ(checkpoint_.description.layer.attention.score_scale, 2);
  EXPECT_EQ(Weight("key.weight"), TestValues("a.k.weight", 16));
  EXPECT_EQ(Weight("key.bias"), TestValues("a.k.bias", 4));
  EXPECT_EQ(Weight("output.bias"), TestValues("a.o.bias", 4));
}

TEST_F(AttentionModuleTest, StacksTheTensorsOfEachHead) {
  Json description = Description();
  description["query"] = "heads.{head}.Q";
  description["key"] = "heads.{head}.K";
  description["output"] = "linear";
  Tensors tensors = {MakeTensor("v", {6, 3}), MakeTensor("linear.weight", {5, 6})};
  for (const char* name : {"heads.0.Q", "heads.1.Q", "heads.0.K", "heads.1.K"}) {
    tensors.push_back(MakeTensor(std::string(name) + ".weight", {2, 3}));
    tensors.push_back(MakeTensor(std::string(name) + ".bias", {2}));
  }
  Load(description, tensors);
  EXPECT_EQ(checkpoint_.description.layer.projected_width(), 5);
  EXPECT_EQ(Weight("key.weight"),
            Joined(TestValues("heads.0.K.weight", 6), TestValues("heads.1.K.weight", 6)));
  EXPECT_EQ(Weight("key.bias"),
            Joined(TestValues("heads.0.K.bias", 2), TestValues("heads.1.K.bias", 2)));
}

TEST_F(AttentionModuleTest, TransposesWeightsThatStandRightOfTheInput) {
  Json description = Description();
  description["weight_layout"] = "in_out";
  Load(description,
       {MakeTensor("q", {3, 4}), MakeTensor("k", {3, 4}), MakeTensor("v", {3, 6}, "BF16")});
  EXPECT_EQ(checkpoint_.description.layer.hidden_size, 3);
  const std::vector<float> in_file = TestValues("v", 18), read = Weight("value.weight");
  for (int64_t in = 0; in < 3; ++in) {
    for (int64_t out = 0; out < 6; ++out) EXPECT_EQ(read[out * 3 + in], in_file[in * 6 + out]);
  }
}

// Larger than the blocks in which tensors are read.
TEST_F(AttentionModuleTest, TransposesLargeWeights) {
  Json description = Description();
  description["weight_layout"] = "in_out";
  const int64_t in = 700, out = 602;
  Load(description,
       {MakeTensor("q", {in, out}), MakeTensor("k", {in, out}), MakeTensor("v", {in, out})});
  const std::vector<float> in_file = TestValues("q", in * out), read = Weight("query.weight");
  for (int64_t i = 0; i < in * out; ++i) {
    ASSERT_EQ(read[i % out * in + i / out], in_file[i]) << i;
  }
}

TEST_F(AttentionModuleTest, SharesAProjectionNamedTwice) {
  Json description = Description();
  description["key"] = "q";
  Load(description, {MakeTensor("q", {4, 3}), MakeTensor("v", {6, 3})});
  EXPECT_TRUE(checkpoint_.description.layer.attention.keys_are_queries);
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.key.weight"));

  description = Description();
  description["value"] = "k";
  Load(description, {MakeTensor("q", {4, 3}), MakeTensor("k", {4, 3})});
  EXPECT_TRUE(checkpoint_.description.layer.attention.values_are_keys);
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.value.weight"));
}

TEST_F(AttentionModuleTest, NeedsNoFileWithoutProjections) {
  const Json description = {{"module", "attention"}, {"num_heads", 2}, {"hidden_size", 6}};
  folder_.Write("attendant.json", description.dump());
  absl::StatusOr<Checkpoint> opened = OpenCheckpoint(folder_.path(), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(opened->description.layer.attention.has_input_projection);
  EXPECT_EQ(opened->description.layer.attention.key_width, 3);

  CheckpointOptions options;
  options.weights_sha256 = std::string(64, '0');
  EXPECT_THAT(std::string(OpenCheckpoint(folder_.path(), options).status().message()),
              HasSubstr("no weight file to check the SHA-256"));
}

TEST_F(AttentionModuleTest, RefusesDescriptionsThatSayTooLittleOrTooMuch) {
  Json description = Description();
  description.erase("weight_layout");
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("weight_layout: missing; expected one of out_in, in_out"));
  description = Description();
  description.erase("key");
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("key: missing; expected a string"));
  description = Description();
  description["value"] = "q";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("value: expected the same name as key or a different name from query; got "
                        "'q'"));
  description = Description();
  description["output"] = "o.{head}";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("output: expected one linear layer for all heads"));
  description = Description();
  description["file"] = "../m.safetensors";
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("file: expected the plain name"));
  description["num_heads"] = 0;
  EXPECT_THAT(
      Refusal(description, ThreeMatrices()),
      AllOf(HasSubstr("attendant.json: 2 problems: "),
            HasSubstr("file: expected the plain name of a file in this directory; got '../"),
            HasSubstr("num_heads: expected an integer in 1..65536; got 0")));
  description = Description();
  description["norm_first"] = true;
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("got 'norm_first'"));
  description = {{"module", "attention"}, {"num_heads", 4}, {"hidden_size", 6}};
  EXPECT_THAT(Refusal(description, {}),
              HasSubstr("num_heads: expected a divisor of hidden_size 6"));
}

TEST_F(AttentionModuleTest, RefusesTensorsThatDoNotFit) {
  Json description = Description();
  description["num_heads"] = 3;
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("query: expected a multiple of num_heads 3 up to 65536 outputs; got 4"));
  Tensors tensors = ThreeMatrices();
  tensors[1] = MakeTensor("k", {5, 3});
  EXPECT_THAT(Refusal(Description(), tensors),
              AllOf(HasSubstr("tensor 'k' F32 [5, 3]"), HasSubstr("[4, 3]")));
  tensors.erase(tensors.begin() + 1);
  EXPECT_THAT(Refusal(Description(), tensors), HasSubstr("tensor 'k': missing; expected [4, 3]"));
  tensors = ThreeMatrices();
  tensors[0] = MakeTensor("q", {12});
  EXPECT_THAT(Refusal(Description(), tensors), HasSubstr("'q' F32 [12]: expected a matrix"));
  tensors = ThreeMatrices();
  tensors.push_back(MakeTensor("bias", {4}));
  EXPECT_THAT(
      Refusal(Description(), tensors),
      HasSubstr("unexpected; the module has only the tensors of query, key, value and output"));
}

TEST_F(AttentionModuleTest, KeysAndValuesMayTakeOtherInputs) {
  Load(Description(), {MakeTensor("q", {4, 3}), MakeTensor("k", {4, 5}), MakeTensor("v", {6, 2})});
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.hidden_size, 3);
  EXPECT_EQ(layer.key_inputs(), 5);
  EXPECT_EQ(layer.value_inputs(), 2);
  EXPECT_TRUE(layer.needs_cross_kv());
  EXPECT_EQ(Weight("key.weight"), TestValues("k", 20));
  EXPECT_EQ(Weight("value.weight"), TestValues("v", 12));
}

TEST_F(AttentionModuleTest, ReadsOtherKindsOfAttention) {
  Json description = Description();
  description["attention"] = "additive";
  description["score"] = "w";
  Tensors tensors = ThreeMatrices();
  tensors.push_back(MakeTensor("w", {4}));
  Load(description, tensors);
  EXPECT_EQ(checkpoint_.description.layer.attention.kind, AttentionKind::kAdditive);
  EXPECT_EQ(checkpoint_.description.layer.attention.score_scale, 1);
  EXPECT_EQ(Weight("score"), TestValues("w", 4));

  description = Description();
  description["attention"] = "causal_linear";
  Load(description, ThreeMatrices());
  EXPECT_EQ(checkpoint_.description.layer.attention.kind, AttentionKind::kCausalLinear);
}

TEST_F(AttentionModuleTest, ReadsWindowsAndGlobalBlocks) {
  Json description = Description();
  description["first_global"] = 1;
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("got 'first_global'"));
  description["window"] = 2;
  description["window_block"] = 16;
  description["last_global"] = 3;
  Load(description, ThreeMatrices());
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.attention.window, 2);
  EXPECT_EQ(layer.attention.pattern,
            (AttentionPattern{.block = 16, .first_global = 1, .last_global = 3}));
  description["window"] = 0;
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("window: expected an integer in"));
}

TEST_F(AttentionModuleTest, ReadsListsOfBlocks) {
  Json description = Description();
  description["block_pairs"] = {{2, 7}, {3, 0}, {2, 5}};
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("got 'block_pairs'"));
  description["window"] = 1;
  description["window_block"] = 64;
  description["global_blocks"] = {9, 4};
  Load(description, ThreeMatrices());
  const AttentionPattern& pattern = checkpoint_.description.layer.attention.pattern;
  EXPECT_EQ(pattern, (AttentionPattern{.block = 64,
                                       .listed = BlockLists({{2, 5}, {2, 7}, {3, 0}}, {4, 9})}));
  EXPECT_NE(pattern, (AttentionPattern{.block = 64, .listed = BlockLists({{2, 5}, {2, 7}})}));
}

TEST_F(AttentionModuleTest, RefusesListsOfBlocksThatCannotBe) {
  Json description = Description();
  description["window"] = 1;
  description["window_block"] = 64;
  const std::string expected =
      "block_pairs: expected a list of up to 65536 different pairs of integers in 0..16383; got ";
  const std::pair<const char*, const char*> refused[] = {
      {"3", "3"},
      {"[3]", "3 in it"},
      {"[[1, 2, 3]]", "a list in it"},
      {"[[1, -2]]", "[1, -2] in it"},
      {"[[1, 2], [16384, 1]]", "[16384, 1] in it"},
      {"[[1, 0.5]]", "[1, 0.5] in it"},
      {"[[1, 2], [3, 4], [1, 2]]", "[1, 2] twice"}};
  for (const auto& [pairs, found] : refused) {
    description["block_pairs"] = Json::parse(pairs);
    EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr(expected + found)) << pairs;
  }
  description["block_pairs"] = Json(Json::array_t(65'537, Json::array({0, 0})));
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr(expected + "65537 elements"));
  description.erase("block_pairs");
  description["global_blocks"] = {1, 2, 1};
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("global_blocks: expected a list of up to 65536 different integers in "
                        "0..16383; got 1 twice"));
  description["global_blocks"] = {1, 16384};
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("got 16384 in it"));
}

TEST_F(AttentionModuleTest, ReadsAMixingOfKeysAndValues) {
  Json description = Description();
  description["attention"] = "linformer";
  description["key_mixing"] = description["value_mixing"] = "E";
  Tensors tensors = ThreeMatrices();
  EXPECT_THAT(Refusal(description, tensors),
              HasSubstr("tensor 'E': missing; expected a matrix of up to"));
  tensors.push_back(MakeTensor("E", {5, 7}));
  Load(description, tensors);
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.attention.linformer.keys, 5);
  EXPECT_EQ(layer.attention.linformer.positions, 7);
  EXPECT_FLOAT_EQ(layer.attention.score_scale, 0.70710678f);
  EXPECT_EQ(Weight("key_mixing"), TestValues("E", 35));
  EXPECT_EQ(Weight("value_mixing"), TestValues("E", 35));
}

TEST_F(AttentionModuleTest, SplitsCollaborativeHeads) {
  Json description = Description();
  description["mixing"] = "m";
  description["content_bias"] = "c";
  Tensors tensors = ThreeMatrices();
  tensors.push_back(MakeTensor("m", {2, 4}));
  tensors.push_back(MakeTensor("c", {2, 3}));
  Load(description, tensors);
  const LayerShape& layer = checkpoint_.description.layer;
  EXPECT_EQ(layer.attention.key_width, 5);  // the shared columns and one for the content bias
  EXPECT_FLOAT_EQ(layer.attention.score_scale,
                  1 / std::sqrt(2.0f));  // from the shared columns per head
  const std::vector<float> queries = Weight("query.weight"), keys = Weight("key.weight");
  const std::vector<float> q = TestValues("q", 12), k = TestValues("k", 12), m = TestValues("m", 8),
                           c = TestValues("c", 6);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(queries[h * 15 + i], m[h * 4 + i / 3] * q[i]);
      EXPECT_EQ(keys[h * 15 + i], k[i]);
    }
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(queries[h * 15 + 12 + j], 0);
      EXPECT_EQ(keys[h * 15 + 12 + j], c[h * 3 + j]);
    }
  }
  EXPECT_EQ(Weight("query.bias"), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(checkpoint_.weights->Has("layer.0.key.bias"));
}

TEST_F(AttentionModuleTest, RefusesKindsThatSayTooLittleOrTooMuch) {
  Json description = Description();
  description["attention"] = "quadratic";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("attention: expected one of softmax, additive, linear, causal_linear, "
                        "linformer"));
  description["attention"] = "additive";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("score: missing; expected a string"));
  description["attention"] = "linear";
  description["score"] = "w";
  EXPECT_THAT(Refusal(description, ThreeMatrices()), HasSubstr("got 'score'"));
  description = Description();
  description["mixing"] = "m";
  description["key"] = "q";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("mixing: requires a query and a key that all heads share"));
  description["key"] = "k";
  EXPECT_THAT(Refusal(description, ThreeMatrices()),
              HasSubstr("tensor 'm': missing; expected [2, 4]"));
}

// One head lacks the bias that the others have.
TEST_F(AttentionModuleTest, RefusesHeadsThatDiffer) {
  Json description = Description();
  description["query"] = "heads.{head}.Q";
  Tensors tensors = {MakeTensor("k", {4, 3}), MakeTensor("v", {6, 3}),
                     MakeTensor("heads.0.Q.weight", {2, 3}), MakeTensor("heads.0.Q.bias", {2}),
                     MakeTensor("heads.1.Q.weight", {2, 3})};
  EXPECT_THAT(Refusal(description, tensors),
              HasSubstr("tensor 'heads.1.Q.bias': missing; expected [2]"));
}

}  // namespace attention_module_test
}  // namespace attendant
