// Tests of the mask of causal models: what the operator says of it, and how texts are pooled for
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/choices.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace causal_choice_test {

using ::testing::HasSubstr;

// Opens a tiny model of the family, of this architecture, without modules.json.
absl::StatusOr<Checkpoint> Open(const std::string& name, const std::string& architecture,
                                CausalChoice choice = CausalChoice::kAsFiles) {
  const std::vector<TinyFamily> all = TinyFamilies();
  TinyFamily family = *std::find_if(all.begin(), all.end(),
                                    [&](const TinyFamily& tiny) { return tiny.name == name; });
  family.config.insert(1, absl::StrCat("\"architectures\": [\"", architecture, "\"], "));
  const TempFolder folder;
  WriteFamily(folder, family);
  folder.Write("tokenizer.json", R"({"model": {}, "added_tokens": []})");
  CheckpointOptions options;
  options.causal = choice;
  return OpenCheckpoint(folder.path(), options);
}

TEST(CausalChoice, IsStrongerThanTheFolder) {
  const auto attention = [](CausalChoice choice) {
    const absl::StatusOr<Checkpoint> checkpoint = Open("mistral", "MistralModel", choice);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint->description.layer.attention;
  };
  EXPECT_TRUE(attention(CausalChoice::kAsFiles).causal);
  EXPECT_TRUE(attention(CausalChoice::kCausal).causal);
  EXPECT_EQ(attention(CausalChoice::kCausal).window, 2);
  EXPECT_FALSE(attention(CausalChoice::kBidirectional).causal);
  EXPECT_EQ(attention(CausalChoice::kBidirectional).window, 3);
}

TEST(CausalChoice, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(Open("eurobert", "EuroBertModel", CausalChoice::kCausal).status().message(),
              HasSubstr(": causal: not supported: models of the family eurobert are never causal; "
                        "leave the key out"));
  CheckpointOptions options;
  options.causal = CausalChoice::kBidirectional;
  EXPECT_THAT(
      OpenCheckpoint("synthetic:tiny", options).status().message(),
      HasSubstr(
          "synthetic:tiny: causal: not supported: only Hugging Face models have this option"));
}

// As sentence-transformers does without modules.
TEST(CausalChoice, TextsOfALanguageModelTakeTheLastToken) {
  const absl::StatusOr<Checkpoint> checkpoint = Open("qwen3", "Qwen3ForCausalLM");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.pooling,
            (PoolingDescription{.modes = {PoolingMode::kLastToken}}));
  EXPECT_FALSE(checkpoint->tokenization.texts_take_mean);
}

TEST(CausalChoice, TextsOfOtherCausalModelsTakeTheMean) {
  for (const auto& [architecture, choice] : {std::pair{"Qwen3Model", CausalChoice::kAsFiles},
                                             {"Qwen3ForCausalLM", CausalChoice::kBidirectional}}) {
    const absl::StatusOr<Checkpoint> checkpoint = Open("qwen3", architecture, choice);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_FALSE(checkpoint->description.pooling.has_value());
    EXPECT_TRUE(checkpoint->tokenization.texts_take_mean);
  }
}

}  // namespace causal_choice_test
}  // namespace attendant
