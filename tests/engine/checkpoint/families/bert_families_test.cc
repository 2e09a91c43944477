// Tests of the rules of families in the format of BERT, and of encoders in the format of BART.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/families/families.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace bert_families_test {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A family's files, which tests change.
struct Files {
  std::string config;
  std::vector<TestTensor> tensors;
};

Files Tiny(const std::string& name) {
  for (const TinyFamily& family : TinyBertFamilies()) {
    if (family.name == name) return {family.config, TensorsOf(family)};
  }
  ADD_FAILURE() << "no family " << name;
  return {};
}

Files With(Files files, const std::string& from, const std::string& to) {
  EXPECT_THAT(files.config, HasSubstr(from));
  files.config = absl::StrReplaceAll(files.config, {{from, to}});
  return files;
}

Files Without(Files files, const std::string& tensor) {
  const size_t erased = std::erase_if(
      files.tensors, [&](const TestTensor& other) { return other.name.starts_with(tensor); });
  EXPECT_GE(erased, 1) << tensor;
  return files;
}

absl::StatusOr<Checkpoint> Open(const Files& files, const TempFolder& folder = TempFolder()) {
  folder.Write("config.json", files.config);
  folder.Write("model.safetensors", MakeSafetensors(files.tensors));
  return OpenCheckpoint(folder.path(), {});
}

ModelDescription Describe(const Files& files) {
  const absl::StatusOr<Checkpoint> checkpoint = Open(files);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? checkpoint->description : ModelDescription();
}

std::string Refusal(const Files& files) {
  const absl::Status status = Open(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(BertFamilies, RoFormerTurnsNeighbouringColumns) {
  const ModelDescription model = Describe(Tiny("roformer"));
  const RotaryShape expected = {.frequencies = RotaryFrequencies(4, 10000),
                                .pairs = RotaryPairs::kInterleaved};
  EXPECT_EQ(model.layer.relative_positions.rotary, expected);
  EXPECT_EQ(model.embeddings->width, 6);
  EXPECT_EQ(model.embeddings->positions, 0);
  EXPECT_FALSE(model.pooling.has_value());
  EXPECT_THAT(Refusal(With(Tiny("roformer"), "\"rotary_value\": false", "\"rotary_value\": true")),
              HasSubstr("rotary_value: expected false (values are not rotated); got true"));
  // Embeddings of the same width are not projected.
  EXPECT_THAT(Refusal(With(Tiny("roformer"), "\"embedding_size\": 6", "\"embedding_size\": 8")),
              HasSubstr("roformer.embeddings_project.weight' F32 [8, 6]: unexpected in this"));
}

// Other names for the same model: the layers of jina-embeddings-v3, without its rotation.
TEST(BertFamilies, JinaRerankerIsARoberta) {
  const absl::StatusOr<Checkpoint> checkpoint = Open(Tiny("jina_reranker"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.family, "roberta");
  EXPECT_EQ(checkpoint->description.embeddings->position_rule, PositionRule::kCountNotPadding);
  EXPECT_EQ(checkpoint->description.embeddings->first_position, 2);
  EXPECT_EQ(checkpoint->description.layer.relative_positions.kind, RelativePositions::kNone);
  EXPECT_THAT(checkpoint->warnings, Each(::testing::Not(HasSubstr("use_flash_attn"))));
}

TEST(BertFamilies, ErnieHasTaskTypesIfItsConfigSaysSo) {
  EXPECT_EQ(Describe(Tiny("ernie")).embeddings->task_types, 3);
  const Files without = With(Tiny("ernie"), "\"use_task_id\": true", "\"use_task_id\": false");
  const absl::StatusOr<Checkpoint> checkpoint = Open(without);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.embeddings->task_types, 0);
  EXPECT_THAT(checkpoint->unused_tensors,
              ElementsAre("ernie.embeddings.task_type_embeddings.weight"));
  EXPECT_THAT(checkpoint->warnings, Each(::testing::Not(HasSubstr("task_type"))));
  EXPECT_THAT(
      Refusal(With(Tiny("ernie"), "\"task_type_vocab_size\": 3", "\"task_type_vocab_size\": 0")),
      HasSubstr("task_type_vocab_size: expected an integer in 1..65536; got 0"));
}

TEST(BertFamilies, RemBertAlwaysProjectsItsEmbeddings) {
  const ModelDescription model = Describe(Tiny("rembert"));
  EXPECT_EQ(model.embeddings->width, 6);
  EXPECT_TRUE(model.embeddings->always_projected);
  EXPECT_EQ(model.pooling->dense_activation, Activation::kTanh);
}

TEST(BertFamilies, EsmLeavesOutMasks) {
  const ModelDescription model = Describe(Tiny("esm"));
  EXPECT_EQ(model.embeddings->mask_id, 7);
  EXPECT_FALSE(model.embeddings->has_norm);
  EXPECT_TRUE(model.has_exit_norm);
  EXPECT_EQ(model.layer.norms.placement, NormPlacement::kPre);
  EXPECT_EQ(model.layer.relative_positions.rotary.pairs, RotaryPairs::kHalves);
  EXPECT_TRUE(Describe(Tiny("esm_norm_before")).embeddings->has_norm);
  EXPECT_EQ(Describe(With(Tiny("esm"), "\"token_dropout\": true", "\"token_dropout\": false"))
                .embeddings->mask_id,
            -1);
}

TEST(BertFamilies, EsmOfOtherKindsIsRefused) {
  const Files files = Tiny("esm");
  // The library's default is a table of positions.
  EXPECT_THAT(Refusal(With(files, "\"position_embedding_type\": \"rotary\",", "")),
              HasSubstr("position_embedding_type: expected 'rotary'; got 'absolute'"));
  EXPECT_THAT(Refusal(With(files, "\"is_folding_model\": false", "\"is_folding_model\": true")),
              HasSubstr("is_folding_model: expected false; got true"));
  EXPECT_THAT(Refusal(With(files, "\"mask_token_id\": 7", "\"mask_token_id\": 10")),
              HasSubstr("mask_token_id: expected an integer in 0..9; got 10"));
  EXPECT_THAT(Refusal(With(files, "\"mask_token_id\": 7, ", "")),
              HasSubstr("mask_token_id: missing; expected an integer in 0..9"));
}

TEST(BertFamilies, EsmTakesTheFrequenciesOfItsFile) {
  EXPECT_EQ(Describe(Tiny("esm")).layer.relative_positions.rotary.frequencies,
            RotaryFrequencies(4, 10000));
  for (const char* layer : {"*", "0"}) {
    Files files = Tiny("esm");
    const auto name = [](const std::string& of) {
      return absl::StrCat("esm.encoder.layer.", of, ".attention.self.rotary_embeddings.inv_freq");
    };
    files.tensors.push_back(MakeTensor(name(layer), {2}));
    files.tensors.push_back(MakeTensor(name("1"), {2}));
    const std::vector<float> values = TestValues(name(layer), 2);
    EXPECT_EQ(Describe(files).layer.relative_positions.rotary.frequencies,
              std::vector<double>(values.begin(), values.end()));
    files.tensors[files.tensors.size() - 2] = MakeTensor(name(layer), {3});
    EXPECT_THAT(Refusal(files), HasSubstr("inv_freq' F32 [3]: expected F32, F16, BF16 or F64 [2]"));
  }
}

TEST(BartFamilies, PositionsBeginAtTheThirdRow) {
  for (const char* name : {"bart", "mbart"}) {
    const ModelDescription model = Describe(Tiny(name));
    EXPECT_EQ(model.embeddings->positions, 18);
    EXPECT_EQ(model.embeddings->first_position, 2);
    EXPECT_EQ(model.embeddings->longest_sequence(), 16);
    EXPECT_EQ(model.embeddings->position_rule, PositionRule::kIndexFromFirstKept);
    EXPECT_EQ(model.layer.norms.epsilon, 1e-5f);
  }
}

TEST(BartFamilies, HaveTheirNormsInPlace) {
  const auto has = [](const char* name) {
    const ModelDescription model = Describe(Tiny(name));
    EXPECT_EQ(model.has_exit_norm, model.layer.norms.placement == NormPlacement::kPre);
    return std::pair(model.embeddings->has_norm, model.has_exit_norm);
  };
  EXPECT_EQ(has("bart"), std::pair(true, false));
  EXPECT_EQ(has("mbart"), std::pair(true, true));
  EXPECT_EQ(has("marian"), std::pair(false, false));
  EXPECT_EQ(has("pegasus"), std::pair(false, true));
  EXPECT_EQ(has("m2m_100"), std::pair(false, true));
}

TEST(BartFamilies, ScaleWordsAsTheirConfigsSay) {
  const auto scale = [](const Files& files) { return Describe(files).embeddings->word_scale; };
  EXPECT_EQ(scale(Tiny("bart")), 1);
  EXPECT_FLOAT_EQ(scale(Tiny("mbart")), std::sqrt(8.0f));
  EXPECT_FLOAT_EQ(scale(Tiny("m2m_100")), std::sqrt(8.0f));  // without a key
  EXPECT_EQ(scale(With(Tiny("m2m_100"), "\"pad_token_id\": 1",
                       "\"pad_token_id\": 1, \"scale_embedding\": false")),
            1);
}

TEST(BartFamilies, WordsMayHaveTheEncodersName) {
  Files files = Without(Tiny("bart"), "model.shared");
  EXPECT_THAT(Refusal(files),
              HasSubstr("'model.encoder.embed_tokens.weight' or 'model.shared.weight'"));
  files.tensors.push_back(MakeTensor("model.encoder.embed_tokens.weight", {10, 8}));
  Describe(files);
  files = Tiny("bart");  // Of two tables, the library's encoder takes its own.
  files.tensors.push_back(MakeTensor("model.encoder.embed_tokens.weight", {10, 8}));
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(files, folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"),
            TestValues("model.encoder.embed_tokens.weight", 80));
}

TEST(BartFamilies, SinusoidsAreThoseOfTheFileOrComputed) {
  const TempFolder folder;
  absl::StatusOr<Checkpoint> saved = Open(Tiny("pegasus"), folder);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(ReadTensor(*saved, "embeddings.position"),
            TestValues("encoder.embed_positions.weight", 128));
  const TempFolder other;
  absl::StatusOr<Checkpoint> computed =
      Open(Without(Tiny("pegasus"), "encoder.embed_positions"), other);
  ASSERT_TRUE(computed.ok()) << computed.status();
  const std::vector<float> table = ReadTensor(*computed, "embeddings.position");
  EXPECT_FLOAT_EQ(table[3 * 8 + 1], std::sin(3 / std::pow(10000.0f, 2.0f / 8)));
  EXPECT_FLOAT_EQ(table[3 * 8 + 4], std::cos(3.0f));
}

TEST(BartFamilies, M2M100CountsTokensAndHasNoPositionForPadding) {
  const TempFolder folder;
  absl::StatusOr<Checkpoint> checkpoint = Open(Tiny("m2m_100"), folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const EmbeddingShape& embeddings = *checkpoint->description.embeddings;
  EXPECT_EQ(embeddings.position_rule, PositionRule::kCountNotPadding);
  EXPECT_EQ(embeddings.first_position, 2);
  EXPECT_EQ(embeddings.positions, 18);
  const std::vector<float> table = ReadTensor(*checkpoint, "embeddings.position");
  EXPECT_THAT(std::vector<float>(table.begin() + 8, table.begin() + 16), Each(0.0f));
  EXPECT_FLOAT_EQ(table[2 * 8 + 1], std::sin(2 * std::pow(10000.0f, -1.0f / 3)));
}

TEST(BartFamilies, WidthsWithoutSinusoidsAreRefused) {
  EXPECT_THAT(Refusal(With(Tiny("marian"), "\"d_model\": 8", "\"d_model\": 2")),
              HasSubstr("expected sinusoids of an even width of at least 4; got 2"));
}

TEST(BartFamilies, OtherArrangementsAreRefused) {
  EXPECT_THAT(Refusal(With(Tiny("bart"), "\"scale_embedding\"",
                           "\"normalize_before\": true, \"scale_embedding\"")),
              HasSubstr("normalize_before: expected false; got true"));
  EXPECT_THAT(Refusal(With(Tiny("marian"), "\"static_position_embeddings\": true",
                           "\"static_position_embeddings\": false")),
              HasSubstr("static_position_embeddings: expected true; got false"));
}

TEST(BartFamilies, HeadsThatNeedTheDecoderAreLeftOut) {
  Files files = With(Tiny("bart"), "{\"model_type\"",
                     "{\"architectures\": [\"BartForSequenceClassification\"], \"model_type\"");
  files.tensors.push_back(MakeTensor("classification_head.out_proj.weight", {3, 8}));
  files.tensors.push_back(MakeTensor("qa_outputs.weight", {2, 8}));
  const absl::StatusOr<Checkpoint> classifier = Open(files);
  ASSERT_TRUE(classifier.ok()) << classifier.status();
  EXPECT_FALSE(classifier->description.classifier.has_value());
  EXPECT_THAT(classifier->warnings,
              Contains(HasSubstr("the classification head is ignored, because it is not "
                                 "supported for the family bart")));
  const absl::StatusOr<Checkpoint> answers =
      Open(With(files, "ForSequenceClassification", "ForQuestionAnswering"));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_FALSE(answers->description.token_head.has_value());
}

TEST(BartFamilies, AreKnownByTheirArchitectures) {
  EXPECT_EQ(FindFamily("", {"MarianMTModel"})->name, "marian");
  EXPECT_EQ(FindFamily("", {"M2M100ForConditionalGeneration"})->name, "m2m_100");
  EXPECT_EQ(FindFamily("", {"MBartForConditionalGeneration"})->name, "mbart");
}

}  // namespace bert_families_test
}  // namespace attendant
