// Tests of the description of a checkpoint, whether it is refused or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/problems.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace inspect_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void WriteBert(const TempFolder& folder, const std::vector<TestTensor>& tensors) {
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(tensors));
}

const CheckpointTensor& Find(const Checkpoint& found, absl::string_view name) {
  const auto at = std::find_if(found.tensors.begin(), found.tensors.end(),
                               [&](const CheckpointTensor& tensor) { return tensor.name == name; });
  if (at == found.tensors.end()) throw std::runtime_error(absl::StrCat("no tensor ", name));
  return *at;
}

TEST(ListProblemsTest, TakesARefusalApart) {
  EXPECT_THAT(ListProblems(absl::OkStatus()), IsEmpty());
  EXPECT_THAT(ListProblems(absl::NotFoundError("nothing; nowhere")),
              ElementsAre("nothing; nowhere"));
  Problems problems("a folder");
  problems.Add("one; with a semicolon");
  problems.Add("two");
  EXPECT_THAT(ListProblems(problems.ToStatus()),
              ElementsAre("a folder: one; with a semicolon", "a folder: two"));
}

TEST(ListProblemsTest, SaysHowManyItLeavesOut) {
  Problems problems("f");
  for (int i = 0; i < 1002; ++i) problems.Add(absl::StrCat("problem ", i));
  const std::vector<std::string> listed = ListProblems(problems.ToStatus());
  ASSERT_EQ(listed.size(), 1001u);
  EXPECT_EQ(listed.back(), "f: and 2 more");
}

TEST(InspectCheckpointTest, TellsWhereEveryTensorWent) {
  TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors("bert.");
  tensors.push_back(MakeTensor("classifier.bias", {3}, "BF16"));
  tensors.push_back({"bert.embeddings.position_ids", {1, 6}, "I64", std::string(48, '\0')});
  WriteBert(folder, tensors);
  Checkpoint found;
  ASSERT_TRUE(InspectCheckpoint(folder.path(), {}, found).ok());
  EXPECT_EQ(found.tensors.size(), tensors.size());
  EXPECT_NE(found.weights, nullptr);
  const CheckpointTensor& query = Find(found, "bert.encoder.layer.1.attention.self.query.weight");
  EXPECT_EQ(query.file, folder.File("model.safetensors"));
  EXPECT_EQ(query.dtype, "F32");
  EXPECT_THAT(query.shape, ElementsAre(4, 4));
  EXPECT_EQ(query.bytes, 64);
  EXPECT_THAT(query.weights, ElementsAre("layer.1.query.weight"));
  EXPECT_THAT(Find(found, "classifier.bias").weights, IsEmpty());
  EXPECT_EQ(Find(found, "classifier.bias").dtype, "BF16");
  EXPECT_THAT(Find(found, "bert.embeddings.position_ids").weights, IsEmpty());
}

TEST(InspectCheckpointTest, TellsWhichRowsATensorHolds) {
  TempFolder folder;
  folder.Write("attendant.json",
               R"({"module": "nn.MultiheadAttention", "file": "m.safetensors", "num_heads": 2})");
  folder.Write("m.safetensors", MakeSafetensors({MakeTensor("in_proj_weight", {12, 4}),
                                                 MakeTensor("out_proj.weight", {4, 4})}));
  Checkpoint found;
  ASSERT_TRUE(InspectCheckpoint(folder.path(), {}, found).ok());
  EXPECT_THAT(Find(found, "in_proj_weight").weights,
              ElementsAre("layer.0.query.weight", "layer.0.key.weight", "layer.0.value.weight"));
}

TEST(InspectCheckpointTest, KeepsWhatWasFoundOutUntilTheRefusal) {
  TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors();
  tensors.back() = MakeTensor(tensors.back().name, {5});
  tensors.push_back(MakeTensor("encoder.surprise", {1}));
  WriteBert(folder, tensors);
  Checkpoint found;
  const absl::Status status = InspectCheckpoint(folder.path(), {}, found);
  EXPECT_EQ(status, OpenCheckpoint(folder.path(), {}).status());
  const std::vector<std::string> problems = ListProblems(status);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0], HasSubstr(tensors[tensors.size() - 2].name));
  EXPECT_THAT(problems[1], HasSubstr("encoder.surprise"));
  EXPECT_EQ(found.description.layers, 2);
  EXPECT_EQ(found.tensors.size(), tensors.size());
  EXPECT_EQ(found.weights, nullptr);
}

TEST(InspectCheckpointTest, KeepsTheTensorsOfATorchModuleThatIsRefused) {
  TempFolder folder;
  folder.Write("attendant.json",
               R"({"module": "nn.MultiheadAttention", "file": "m.safetensors", "num_heads": 3})");
  folder.Write("m.safetensors", MakeSafetensors({MakeTensor("in_proj_weight", {12, 4}),
                                                 MakeTensor("out_proj.weight", {4, 4})}));
  Checkpoint found;
  EXPECT_FALSE(InspectCheckpoint(folder.path(), {}, found).ok());
  EXPECT_EQ(found.tensors.size(), 2u);
  EXPECT_EQ(found.description.layers, 0);
}

TEST(InspectCheckpointTest, KnowsTheDescriptionWithoutWeights) {
  TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  Checkpoint found;
  EXPECT_EQ(InspectCheckpoint(folder.path(), {}, found).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(found.description.family, "bert");
}

TEST(InspectCheckpointTest, DescribesEmbeddedModels) {
  Checkpoint found;
  ASSERT_TRUE(InspectCheckpoint("synthetic:tiny", {}, found).ok());
  EXPECT_EQ(found.description.layers, 2);
  EXPECT_THAT(found.tensors, IsEmpty());
}

TEST(ListValueProblemsTest, NamesEveryTensorWithBadValues) {
  TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "embeddings.word_embeddings.weight") {
      std::vector<float> values(40, 1.0f);
      values[7] = std::numeric_limits<float>::infinity();
      tensor.bytes = Encode(values, "F32");
    } else if (tensor.name == "encoder.layer.1.output.LayerNorm.weight") {
      tensor.bytes = Encode(std::vector<float>(4), "F32");
    }
  }
  WriteBert(folder, tensors);
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::vector<std::string> problems =
      ListValueProblems(checkpoint->description, *checkpoint->weights);
  ASSERT_EQ(problems.size(), 2u) << absl::StrJoin(problems, "\n");
  EXPECT_THAT(problems[0], HasSubstr("got inf at element 7"));
  EXPECT_THAT(problems[1], HasSubstr("all are zero"));
}

TEST(ListValueProblemsTest, FindsNoneInASoundModel) {
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("worked-example", {});
  EXPECT_THAT(ListValueProblems(checkpoint->description, *checkpoint->weights), IsEmpty());
}

}  // namespace inspect_test
}  // namespace attendant
