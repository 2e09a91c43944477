#include "engine/checkpoint/files/weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace weight_files_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string Index(const std::vector<std::pair<std::string, std::string>>& map,
                  const std::string& total = "0") {
  return absl::StrCat(R"({"metadata":{"total_size":)", total, R"(},"weight_map":{)",
                      absl::StrJoin(map, ",",
                                    [](std::string* out, const auto& entry) {
                                      absl::StrAppend(out, "\"", entry.first, "\":\"", entry.second,
                                                      "\"");
                                    }),
                      "}}");
}

class Shards : public ::testing::Test {
 protected:
  Shards() {
    folder_.Write("one.safetensors", MakeSafetensors({MakeTensor("a", {2}), MakeTensor("b", {3})}));
    folder_.Write("two.safetensors", MakeSafetensors({MakeTensor("c", {4})}));
  }

  void WriteIndex(const std::string& index) {
    folder_.Write("model.safetensors.index.json", index);
  }

  std::string Refusal(const CheckpointOptions& options = {}) {
    const absl::Status status = OpenWeightFiles(folder_.path(), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  const std::string one_ = "one.safetensors";
  const std::string two_ = "two.safetensors";
  TempFolder folder_;
};

TEST_F(Shards, AreOpenedByTheIndex) {
  WriteIndex(Index({{"a", one_}, {"b", one_}, {"c", two_}}, "36"));
  const absl::StatusOr<WeightFiles> opened = OpenWeightFiles(folder_.path(), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->files.size(), 2u);
  EXPECT_EQ(opened->files[0].file.path(), folder_.File(one_));
  EXPECT_TRUE(opened->files[1].tensors.contains("c"));
  EXPECT_THAT(opened->warnings, IsEmpty());
}

TEST_F(Shards, WrongTotalSizeIsAWarning) {
  for (const char* total : {"35", "\"36\"", "-1"}) {
    WriteIndex(Index({{"a", one_}, {"b", one_}, {"c", two_}}, total));
    const absl::StatusOr<WeightFiles> opened = OpenWeightFiles(folder_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(opened->warnings,
                ElementsAre(AllOf(HasSubstr("model.safetensors.index.json: metadata.total_size"),
                                  HasSubstr("the tensors have 36"))));
  }
}

TEST_F(Shards, W10ComparesNamesBothWays) {
  WriteIndex(Index({{"a", one_}, {"c", one_}, {"d", two_}}));
  EXPECT_THAT(
      Refusal(),
      AllOf(HasSubstr("model.safetensors.index.json: 4 problems: "),
            HasSubstr("tensor 'c': not found in 'one.safetensors', where the index places it"),
            HasSubstr("tensor 'b': in 'one.safetensors', but the index does not list it"),
            HasSubstr("tensor 'd': not found in 'two.safetensors', where the index places it"),
            HasSubstr(
                "tensor 'c': in 'two.safetensors', but the index places it in 'one.safetensors'")));
}

TEST_F(Shards, W10RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "..", ".",
                           "", "one\\u0000.safetensors"}) {
    WriteIndex(Index({{"a", name}}));
    EXPECT_THAT(
        Refusal(),
        HasSubstr(
            "weight_map, tensor 'a': expected the plain name of a file in this directory; got '"))
        << name;
  }
  WriteIndex(R"({"weight_map":{"a":5}})");
  EXPECT_THAT(Refusal(), HasSubstr("expected the plain name of a file in this directory; got 5"));
}

TEST_F(Shards, W10RefusesAnIndexWithoutAMap) {
  for (const char* index : {"{}", "[]", R"({"weight_map":[]})"}) {
    WriteIndex(index);
    EXPECT_THAT(Refusal(), HasSubstr("weight_map: expected an object"));
  }
  WriteIndex(Index({}));
  EXPECT_THAT(Refusal(), HasSubstr("expected 1..512 files; got 0"));
  WriteIndex(R"({"weight_map":{"a":"x","a":"y"}})");
  EXPECT_THAT(Refusal(), HasSubstr("key 'a' twice"));
}

TEST_F(Shards, W10AppliesTheRulesToEachShard) {
  folder_.Write(two_, WithLength("{\"c\":1}"));
  WriteIndex(Index({{"a", one_}, {"b", one_}, {"c", two_}, {"d", "missing.safetensors"}}));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("2 problems: "), HasSubstr("missing.safetensors: no such file"),
                    HasSubstr("two.safetensors: tensor 'c': expected an object")));
}

TEST_F(Shards, MayBeLinks) {
  std::filesystem::create_symlink(folder_.File(two_), folder_.File("link.safetensors"));
  WriteIndex(Index({{"a", one_}, {"b", one_}, {"c", "link.safetensors"}}));
  const absl::StatusOr<WeightFiles> opened = OpenWeightFiles(folder_.path(), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->files.size(), 2u);
}

TEST_F(Shards, W1LimitsAllFilesTogether) {
  WriteIndex(Index({{"a", one_}, {"b", one_}, {"c", two_}}, "36"));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(folder_.File(one_)) +
                                          std::filesystem::file_size(folder_.File(two_)));
  CheckpointOptions options;
  options.max_model_bytes = bytes;
  EXPECT_TRUE(OpenWeightFiles(folder_.path(), options).ok());
  options.max_model_bytes = bytes - 1;
  EXPECT_THAT(Refusal(options), HasSubstr("two.safetensors: expected at most"));
}

TEST(WeightFiles, PrefersTheSingleFile) {
  TempFolder folder;
  folder.Write("model.safetensors", MakeSafetensors({MakeTensor("a", {2})}));
  folder.Write("model.safetensors.index.json", "{}");
  folder.Write("pytorch_model.bin", "pickle");
  const absl::StatusOr<WeightFiles> opened = OpenWeightFiles(folder.path(), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->files.size(), 1u);
}

TEST(WeightFiles, RefusesPicklesWithTheCommandThatConvertsThem) {
  const std::pair<const char*, const char*> pickles[] = {
      {"pytorch_model.bin", "pytorch_model.bin"},
      {"pytorch_model.bin.index.json", "pytorch_model-*.bin"},
      {"pytorch_model-00001-of-00002.bin", "pytorch_model-*.bin"},
      {"model.pt", "model.pt"},
      {"a'; rm x.pth", "FILE"}};
  for (const auto& [name, pattern] : pickles) {
    TempFolder folder;
    folder.Write(name, "pickle");
    folder.Write("model.onnx", "x");
    folder.Write("training_args.bin", "pickle");
    const absl::Status status = OpenWeightFiles(folder.path(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(absl::StrCat(folder.path(), ": only safetensors are read; got '",
                                              name[0] == 'a' ? "a\\'; rm x.pth" : name,
                                              "', a pickle, which can run code")),
                      HasSubstr(absl::StrCat("python3 -c \"import glob, torch, ")),
                      HasSubstr(absl::StrCat("glob.glob('", pattern, "')")),
                      HasSubstr("weights_only=True"), EndsWith("'model.safetensors')\"")));
    EXPECT_EQ(OpenWeightFile(folder.path(), name, {}).status(), status);
  }
}

// bge-m3 as it is published.
TEST(WeightFiles, HeadsBesideTheWeightsAreNotTheWeights) {
  TempFolder folder;
  for (const char* name : {"colbert_linear.pt", "sparse_linear.pt"}) folder.Write(name, "pickle");
  EXPECT_EQ(OpenWeightFiles(folder.path(), {}).status().code(), absl::StatusCode::kNotFound);
  folder.Write("pytorch_model.bin", "pickle");
  EXPECT_THAT(std::string(OpenWeightFiles(folder.path(), {}).status().message()),
              HasSubstr("glob.glob('pytorch_model.bin')"));
}

TEST(WeightFiles, WhatTrainersSaveIsNoModel) {
  TempFolder folder;
  for (const char* name : {"training_args.bin", "optimizer.pt", "rng_state_0.pth"}) {
    folder.Write(name, "pickle");
  }
  EXPECT_EQ(OpenWeightFiles(folder.path(), {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(WeightFiles, AreNotFoundInAnEmptyFolder) {
  TempFolder folder;
  const absl::Status status = OpenWeightFiles(folder.path(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("no model.safetensors or model.safetensors.index.json"));
}

}  // namespace weight_files_test
}  // namespace attendant
