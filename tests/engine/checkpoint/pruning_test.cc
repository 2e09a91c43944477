#include "engine/checkpoint/pruning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/embedded.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace pruning_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kWidth = 32;
constexpr int64_t kHeads = 4;
constexpr int64_t kHeadWidth = kWidth / kHeads;

// synthetic:tiny: 2 layers, E 32, H 4.
class PruningTest : public ::testing::Test {
 protected:
  absl::Status Prune(const std::string& json) {
    folder_.Write("prune.json", json);
    pruned_ = *OpenSynthetic("tiny");
    return PruneHeads(folder_.File("prune.json"), pruned_);
  }
  std::string Refusal(const std::string& json) {
    const absl::Status status = Prune(json);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  std::string InFile(const std::string& problem) const {
    return absl::StrCat(folder_.File("prune.json"), ": ", problem);
  }

  TempFolder folder_;
  Checkpoint pruned_;
  Checkpoint whole_ = *OpenSynthetic("tiny");
};

TEST_F(PruningTest, TakesRowsOfTheProjectionsAndColumnsOfTheOutput) {
  ASSERT_TRUE(Prune(R"({"1": [2, 0]})").ok());
  EXPECT_EQ(pruned_.description.layer_at(0), whole_.description.layer_at(0));
  const LayerShape layer = pruned_.description.layer_at(1);
  EXPECT_EQ(layer.attention.heads, 2);
  EXPECT_EQ(pruned_.description.heads_at(1), 2);
  EXPECT_THAT(layer.attention.head_numbers, ElementsAre(1, 3));
  EXPECT_EQ(layer.context_width(), 2 * kHeadWidth);
  EXPECT_EQ(layer.projected_width(), kWidth);
  for (const char* name : {"query", "key", "value"}) {
    for (const auto& [part, columns] : {std::pair{".weight", kWidth}, {".bias", int64_t{1}}}) {
      const std::string tensor = absl::StrCat("layer.1.", name, part);
      const std::vector<float> all = ReadTensor(whole_, tensor);
      std::vector<float> left;
      for (const int64_t head : {1, 3}) {
        const auto first = all.begin() + head * kHeadWidth * columns;
        left.insert(left.end(), first, first + kHeadWidth * columns);
      }
      EXPECT_EQ(ReadTensor(pruned_, tensor), left) << tensor;
    }
  }
  const std::vector<float> all = ReadTensor(whole_, "layer.1.output.weight");
  std::vector<float> left;
  for (int64_t row = 0; row < kWidth; ++row) {
    for (const int64_t head : {1, 3}) {
      const auto first = all.begin() + row * kWidth + head * kHeadWidth;
      left.insert(left.end(), first, first + kHeadWidth);
    }
  }
  EXPECT_EQ(ReadTensor(pruned_, "layer.1.output.weight"), left);
  for (const char* name : {"layer.0.query.weight", "layer.1.output.bias", "embeddings.word"}) {
    EXPECT_EQ(ReadTensor(pruned_, name), ReadTensor(whole_, name)) << name;
  }
}

TEST_F(PruningTest, ALayerMayLoseAllHeads) {
  ASSERT_TRUE(Prune(R"({"0": [3, 2, 1, 0]})").ok());
  EXPECT_EQ(pruned_.description.heads_at(0), 0);
  std::vector<std::string> names;
  for (const WeightSpec& spec : ListWeights(pruned_.description)) names.push_back(spec.name);
  EXPECT_THAT(names, ::testing::Contains("layer.0.output.bias"));
  for (const char* gone : {"layer.0.query.weight", "layer.0.value.bias", "layer.0.output.weight"}) {
    EXPECT_THAT(names, ::testing::Not(::testing::Contains(gone)));
  }
}

TEST_F(PruningTest, NothingToPrune) {
  for (const char* json : {"{}", R"({"0": []})"}) {
    ASSERT_TRUE(Prune(json).ok());
    EXPECT_EQ(pruned_.description.layer_at(0), whole_.description.layer_at(0));
    EXPECT_THAT(pruned_.description.layer_at(0).attention.head_numbers, IsEmpty());
  }
}

TEST_F(PruningTest, NamesTheFileAndWhatIsWrongWithIt) {
  EXPECT_EQ(Refusal("[]"), InFile("expected an object from layers to lists of heads; got a list"));
  EXPECT_EQ(Refusal(R"({"2": [0]})"), InFile("expected layers 0..1; got '2'"));
  EXPECT_EQ(Refusal(R"({"01": [0]})"), InFile("expected layers 0..1; got '01'"));
  EXPECT_EQ(Refusal(R"({"all": [0]})"), InFile("expected layers 0..1; got 'all'"));
  EXPECT_EQ(Refusal(R"({"-1": [0]})"), InFile("expected layers 0..1; got '-1'"));
  EXPECT_EQ(Refusal(R"({"0": 1})"), InFile("layer 0: expected a list of heads; got 1"));
  EXPECT_EQ(Refusal(R"({"0": [4]})"), InFile("layer 0: expected heads 0..3; got 4"));
  EXPECT_EQ(Refusal(R"({"0": [-1]})"), InFile("layer 0: expected heads 0..3; got -1"));
  EXPECT_EQ(Refusal(R"({"0": [1.5]})"), InFile("layer 0: expected heads 0..3; got 1.5"));
  EXPECT_EQ(Refusal(R"({"0": [1, 2, 1]})"),
            InFile("layer 0: expected each head once; got 1 twice"));
  EXPECT_EQ(
      Refusal(R"({"0": [9], "7": []})"),
      InFile("2 problems: layer 0: expected heads 0..3; got 9; expected layers 0..1; got '7'"));
  EXPECT_THAT(Refusal("{"), HasSubstr(folder_.File("prune.json")));
  EXPECT_THAT(Refusal(R"({"0": [1], "0": [2]})"), HasSubstr(folder_.File("prune.json")));
}

TEST_F(PruningTest, TheFileHasToBeThere) {
  EXPECT_EQ(PruneHeads(folder_.File("none"), pruned_).code(), absl::StatusCode::kNotFound);
}

TEST_F(PruningTest, LayersThatShareWeightsLoseTheSameHeads) {
  const auto prune = [&](const std::string& json) {
    folder_.Write("prune.json", json);
    Checkpoint shared = *OpenSynthetic("tiny");
    shared.description.layer_map = {0, 0};
    return std::string(PruneHeads(folder_.File("prune.json"), shared).message());
  };
  EXPECT_EQ(prune(R"({"0": [1, 3], "1": [3, 1]})"), "");
  EXPECT_EQ(
      prune(R"({"0": [1, 3], "1": [3]})"),
      InFile(
          "expected the same heads for layers 0 and 1 (they share their weights); got 1 3 and 3"));
}

TEST_F(PruningTest, RefusesWhatCannotBePruned) {
  const auto refusal = [&](const std::function<void(LayerShape&)>& change) {
    folder_.Write("prune.json", R"({"0": [1]})");
    Checkpoint checkpoint = *OpenSynthetic("tiny");
    change(checkpoint.description.layer);
    return std::string(PruneHeads(folder_.File("prune.json"), checkpoint).message());
  };
  const std::string start = "cannot prune heads of this model: ";
  EXPECT_EQ(
      refusal([](LayerShape& layer) { layer.attention.has_input_projection = false; }),
      InFile(start + "it has no input projection, so its heads are columns of the hidden states"));
  EXPECT_EQ(refusal([](LayerShape& layer) { layer.attention.has_output_projection = false; }),
            InFile(start + "it has no output projection, so its heads are columns of its output"));
  EXPECT_EQ(refusal([](LayerShape& layer) {
              layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
            }),
            InFile(start + "its query and key norms span all heads"));
  EXPECT_EQ(refusal([](LayerShape& layer) { layer.attention.key_value_heads = 1; }),
            InFile(start + "its heads share keys and values"));
}

TEST_F(PruningTest, OpeningACheckpointPrunesIt) {
  folder_.Write("prune.json", R"({"0": [1]})");
  CheckpointOptions options;
  options.prune_file = folder_.File("prune.json");
  const absl::StatusOr<Checkpoint> opened = OpenCheckpoint("synthetic:tiny", options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->description.heads_at(0), 3);
  folder_.Write("prune.json", R"({"0": [8]})");
  EXPECT_EQ(OpenCheckpoint("synthetic:tiny", options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace pruning_test
}  // namespace attendant
