#include "engine/model/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"

namespace attendant {
namespace weight_source_test {

using ::testing::ElementsAre;

std::vector<std::string> Listing(const ModelDescription& description) {
  std::vector<std::string> lines;
  for (const WeightSpec& spec : ListWeights(description)) {
    lines.push_back(
        absl::StrCat(spec.name, " ", ShapeToString(spec.shape), spec.optional ? " optional" : ""));
  }
  return lines;
}

TEST(ListWeights, AttentionAloneHasThreeProjections) {
  ModelDescription description;
  description.layers = 1;
  description.layer.hidden_size = 4;
  description.layer.attention.heads = 2;
  description.layer.attention.key_width = 3;
  description.layer.attention.value_width = 5;
  description.layer.norms.placement = NormPlacement::kNone;
  description.layer.attention.has_output_projection = false;
  EXPECT_THAT(Listing(description),
              ElementsAre("layer.0.query.weight [6, 4]", "layer.0.query.bias [6] optional",
                          "layer.0.key.weight [6, 4]", "layer.0.key.bias [6] optional",
                          "layer.0.value.weight [10, 4]", "layer.0.value.bias [10] optional"));
  description.layer.attention.has_output_projection = true;
  EXPECT_EQ(Listing(description)[6], "layer.0.output.weight [4, 10]");
  EXPECT_EQ(Listing(description)[7], "layer.0.output.bias [4] optional");
}

TEST(ListWeights, WholeModelInLoadingOrder) {
  ModelDescription description;
  description.layers = 1;
  description.layer.hidden_size = 4;
  description.layer.attention.heads = 2;
  description.layer.attention.key_width = 2;
  description.layer.attention.value_width = 2;
  description.layer.feed_forward.width = 8;
  description.embeddings.emplace();
  description.embeddings->width = 3;
  description.embeddings->vocabulary = 10;
  description.embeddings->positions = 7;
  description.embeddings->token_types = 2;
  description.has_exit_norm = true;
  description.pooling = PoolingDescription{.modes = {PoolingMode::kMean, PoolingMode::kMax},
                                           .dense_width = 6,
                                           .dense_activation = Activation::kTanh,
                                           .normalize = true};
  EXPECT_THAT(
      Listing(description),
      ElementsAre(
          "embeddings.word [10, 3]", "embeddings.position [7, 3]", "embeddings.token_type [2, 3]",
          "embeddings.norm.weight [3]", "embeddings.norm.bias [3] optional",
          "embeddings.projection.weight [4, 3]", "embeddings.projection.bias [4] optional",
          "layer.0.query.weight [4, 4]", "layer.0.query.bias [4] optional",
          "layer.0.key.weight [4, 4]", "layer.0.key.bias [4] optional",
          "layer.0.value.weight [4, 4]", "layer.0.value.bias [4] optional",
          "layer.0.output.weight [4, 4]", "layer.0.output.bias [4] optional",
          "layer.0.attention_norm.weight [4]", "layer.0.attention_norm.bias [4] optional",
          "layer.0.feed_forward_in.weight [8, 4]", "layer.0.feed_forward_in.bias [8] optional",
          "layer.0.feed_forward_out.weight [4, 8]", "layer.0.feed_forward_out.bias [4] optional",
          "layer.0.feed_forward_norm.weight [4]", "layer.0.feed_forward_norm.bias [4] optional",
          "exit_norm.weight [4]", "exit_norm.bias [4] optional", "pooling.dense.weight [6, 8]",
          "pooling.dense.bias [6] optional"));
}

TEST(ListWeights, LeavesOutWhatTheModelDoesNotHave) {
  ModelDescription description;
  description.layers = 2;
  description.layer.hidden_size = 4;
  description.layer.attention.heads = 1;
  description.layer.attention.key_width = description.layer.attention.value_width = 4;
  description.layer.feed_forward.width = 8;
  description.layer.norms.placement = NormPlacement::kNone;
  description.embeddings.emplace();
  description.embeddings->width = 4;
  description.embeddings->vocabulary = 10;
  const std::string listing = absl::StrJoin(Listing(description), "\n");
  for (const char* absent : {"_norm", "position", "token_type", "projection", "pooling"}) {
    EXPECT_THAT(listing, ::testing::Not(::testing::HasSubstr(absent)));
  }
  EXPECT_THAT(listing, ::testing::HasSubstr("layer.1.feed_forward_out.weight"));
}

TEST(Names, AreWordsForPeople) {
  EXPECT_STREQ(Name(NormPlacement::kPost), "post");
  EXPECT_STREQ(Name(NormPlacement::kPre), "pre");
  EXPECT_STREQ(Name(NormPlacement::kSandwich), "sandwich");
  EXPECT_STREQ(Name(NormPlacement::kNone), "none");
  EXPECT_STREQ(Name(PoolingMode::kFirstToken), "first_token");
  EXPECT_STREQ(Name(PoolingMode::kPositionWeightedMean), "position_weighted_mean");
  EXPECT_STREQ(Name(PoolingMode::kFeatureMean), "feature_mean");
  EXPECT_STREQ(Name(PoolingMode::kAttention), "attention");
}

}  // namespace weight_source_test
}  // namespace attendant
