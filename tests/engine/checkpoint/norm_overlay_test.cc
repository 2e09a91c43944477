#include "engine/checkpoint/norm_overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace norm_overlay_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNorm[] = "bert.encoder.layer.1.attention.output.LayerNorm.weight";

Checkpoint TinyBert() {
  TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(TinyBertTensors("bert.")));
  return *OpenCheckpoint(folder.path(), {});
}

class NormOverlayTest : public ::testing::Test {
 protected:
  absl::StatusOr<Checkpoint> Open(const std::vector<TestTensor>& tensors,
                                  const Checkpoint& base = TinyBert()) {
    folder_.Write("norms.safetensors", MakeSafetensors(tensors));
    return OpenNormOverlay(folder_.File("norms.safetensors"), base, {});
  }

  std::string Refusal(const std::vector<TestTensor>& tensors) {
    const absl::Status status = Open(tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(NormOverlayTest, TakesNormsByTheirNamesInTheBase) {
  absl::StatusOr<Checkpoint> overlay =
      Open({MakeTensor(kNorm, {4}, "BF16"), MakeTensor("bert.embeddings.LayerNorm.bias", {4})});
  ASSERT_TRUE(overlay.ok()) << overlay.status();
  EXPECT_EQ(ReadTensor(*overlay, "layer.1.attention_norm.weight"), TestValues(kNorm, 4));
  EXPECT_TRUE(overlay->weights->Has("embeddings.norm.bias"));
  EXPECT_FALSE(overlay->weights->Has("layer.0.attention_norm.weight"));
  EXPECT_FALSE(overlay->weights->Has("layer.1.attention_norm.bias"));
  EXPECT_EQ(overlay->description, TinyBert().description);
}

// The only norms that an embedded model has.
TEST_F(NormOverlayTest, TakesCanonicalNames) {
  absl::StatusOr<Checkpoint> base = OpenCheckpoint("synthetic:tiny", {});
  ASSERT_TRUE(base.ok()) << base.status();
  const int64_t width = base->description.layer.hidden_size;
  absl::StatusOr<Checkpoint> overlay =
      Open({MakeTensor("layer.1.feed_forward_norm.weight", {width})}, *base);
  ASSERT_TRUE(overlay.ok()) << overlay.status();
  EXPECT_TRUE(overlay->weights->Has("layer.1.feed_forward_norm.weight"));
}

TEST_F(NormOverlayTest, TakesTheFileOfTheFolderAtHand) {
  EXPECT_EQ(OpenNormOverlay("no-such.safetensors", TinyBert(), {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NormOverlayTest, RefusesWhatIsNoNorm) {
  EXPECT_THAT(
      Refusal({MakeTensor(kNorm, {4}), MakeTensor("bert.encoder.layer.0.output.dense.bias", {4}),
               MakeTensor("encoder.layer.0.output.LayerNorm.bias", {4})}),
      AllOf(HasSubstr(folder_.File("norms.safetensors")),
            HasSubstr("tensor 'bert.encoder.layer.0.output.dense.bias' F32 [4]: expected a norm of "
                      "the base model, named as in its files"),
            HasSubstr("tensor 'encoder.layer.0.output.LayerNorm.bias' F32 [4]: expected a norm of "
                      "the base model, named as in its files")));
}

TEST_F(NormOverlayTest, RefusesAnotherShapeOrType) {
  EXPECT_THAT(Refusal({MakeTensor(kNorm, {5})}),
              HasSubstr("F32 [5]: expected F32, F16, BF16 or F64 [4]"));
  EXPECT_THAT(Refusal({{kNorm, {4}, "I32", std::string(16, '\0')}}),
              HasSubstr("I32 [4]: expected F32, F16, BF16 or F64 [4]"));
}

TEST_F(NormOverlayTest, RefusesAnEmptyFile) {
  EXPECT_THAT(Refusal({}), HasSubstr("expected norms of the base model; the file has no tensors"));
}

TEST_F(NormOverlayTest, RefusesPickledFiles) {
  folder_.Write("norms.bin", "x");
  const absl::Status status = OpenNormOverlay(folder_.File("norms.bin"), TinyBert(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("got 'norms.bin', a pickle"));
}

TEST_F(NormOverlayTest, ChecksValuesAsTheyAreRead) {
  const auto read = [&](const std::vector<float>& values) {
    absl::StatusOr<Checkpoint> overlay = Open({{kNorm, {4}, "F32", Encode(values, "F32")}});
    EXPECT_TRUE(overlay.ok()) << overlay.status();
    std::vector<float> norm(4);
    return std::string(
        overlay->weights->Read("layer.1.attention_norm.weight", absl::MakeSpan(norm)).message());
  };
  EXPECT_THAT(read({1, std::numeric_limits<float>::infinity(), 1, 1}),
              HasSubstr("expected finite values; got inf at element 1"));
  EXPECT_THAT(read({0, 0, 0, 0}), HasSubstr("expected a norm weight with non-zero values"));
}

TEST_F(NormOverlayTest, MayLieOverABaseWithoutSomeHeads) {
  folder_.Write("base/config.json", TinyBertConfig());
  folder_.Write("base/model.safetensors", MakeSafetensors(TinyBertTensors("bert.")));
  folder_.Write("prune.json", R"({"1": [0]})");
  CheckpointOptions options;
  options.prune_file = folder_.File("prune.json");
  Checkpoint pruned = *OpenCheckpoint(folder_.File("base"), options);
  const ModelDescription description = pruned.description;
  const std::vector<float> queries = ReadTensor(pruned, "layer.1.query.weight");
  folder_.Write("norms.safetensors", MakeSafetensors({MakeTensor(kNorm, {4})}));
  absl::StatusOr<Checkpoint> overlay =
      OpenPrunedOverlay(folder_.File("norms.safetensors"), std::move(pruned), {});
  ASSERT_TRUE(overlay.ok()) << overlay.status();
  EXPECT_EQ(overlay->description, description);
  EXPECT_EQ(overlay->tensors.size(), 1u);
  EXPECT_EQ(ReadTensor(*overlay, "layer.1.attention_norm.weight"), TestValues(kNorm, 4));
  EXPECT_EQ(ReadTensor(*overlay, "layer.1.query.weight"), queries);
  EXPECT_FALSE(overlay->weights->Has("layer.0.attention_norm.weight"));
  EXPECT_TRUE(overlay->weights->Has("layer.1.output.bias"));
}

TEST_F(NormOverlayTest, ChecksTheDigest) {
  folder_.Write("norms.safetensors", MakeSafetensors({MakeTensor(kNorm, {4})}));
  CheckpointOptions options;
  options.weights_sha256 = std::string(64, '0');
  const absl::Status status =
      OpenNormOverlay(folder_.File("norms.safetensors"), TinyBert(), options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected SHA-256"));
}

}  // namespace norm_overlay_test
}  // namespace attendant
