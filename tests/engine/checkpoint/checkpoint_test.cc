#include "engine/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/digests.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace checkpoint_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void WriteTinyBert(const TempFolder& folder) {
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
}

absl::Status OpenWithDigest(const TempFolder& folder, const std::string& digest) {
  CheckpointOptions options;
  options.weights_sha256 = digest;
  return OpenCheckpoint(folder.path(), options).status();
}

TEST(OpenCheckpoint, IsNotFoundWhereNothingIs) {
  TempFolder folder;
  const absl::Status empty = OpenCheckpoint(folder.path(), {}).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(empty.ToString(),
              HasSubstr("expected a directory with config.json or attendant.json"));
  const absl::Status missing = OpenCheckpoint(folder.File("x"), {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.ToString(), HasSubstr("x: not a directory, worked-example or synthetic"));
  folder.Write("config.json", TinyBertConfig());
  EXPECT_EQ(OpenCheckpoint(folder.path(), {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(OpenCheckpoint(folder.File("config.json"), {}).status().ToString(),
              HasSubstr("config.json: expected a directory"));
}

// As for a directory of another user; root may search every directory, but no loop.
TEST(OpenCheckpoint, SaysWhyADirectoryCannotBeSearched) {
  TempFolder folder;
  std::filesystem::create_directory_symlink(folder.File("loop"), folder.File("loop"));
  EXPECT_THAT(OpenCheckpoint(folder.File("loop"), {}).status().ToString(),
              HasSubstr("loop/config.json: cannot open: Too many levels of symbolic links"));
}

TEST(OpenCheckpoint, ReadsShards) {
  TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  const std::vector<TestTensor> all = TinyBertTensors();
  const auto middle = all.begin() + 11;
  folder.Write("b.safetensors", MakeSafetensors({all.begin(), middle}));
  folder.Write("a.safetensors", MakeSafetensors({middle, all.end()}));
  std::string map;
  for (auto tensor = all.begin(); tensor != all.end(); ++tensor) {
    absl::StrAppend(&map, map.empty() ? "" : ",", "\"", tensor->name, "\":\"",
                    tensor < middle ? "b" : "a", ".safetensors\"");
  }
  folder.Write("model.safetensors.index.json",
               absl::StrCat(R"({"metadata":{"total_size":1},"weight_map":{)", map, "}}"));
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->warnings.size(), 1u);
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"),
            TestValues("embeddings.word_embeddings.weight", 40));
  EXPECT_EQ(ReadTensor(*checkpoint, "layer.1.output.weight"),
            TestValues("encoder.layer.1.attention.output.dense.weight", 16));

  // sha256sum a.safetensors b.safetensors | cut -c 1-64 | tr -d '\n' | sha256sum
  std::string digests;
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    digests += Sha256(InputFile::Open(folder.File(name), 1 << 20).value()).value();
  }
  EXPECT_TRUE(OpenWithDigest(folder, Sha256(digests).value()).ok());
  EXPECT_THAT(OpenWithDigest(folder, std::string(64, '0')).ToString(),
              AllOf(HasSubstr("a.safetensors, "), HasSubstr("b.safetensors: expected SHA-256 '000"),
                    HasSubstr("got " + Sha256(digests).value())));
}

TEST(OpenCheckpoint, W14ReadsNoTensorData) {
  // A word table of 4 GiB that takes no space on the disk. Reading it would take seconds.
  TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors();
  const int64_t words = int64_t{1} << 24;
  Json::object_t header;
  int64_t offset = 0;
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "embeddings.word_embeddings.weight") tensor.shape[0] = words;
    int64_t bytes = 4;
    for (const int64_t size : tensor.shape) bytes *= size;
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  const std::string head = WithLength(Json(header).dump());
  folder.Write("model.safetensors", head);
  std::filesystem::resize_file(folder.File("model.safetensors"), head.size() + offset);
  Json config = Json::parse(TinyBertConfig());
  config["vocab_size"] = words;
  folder.Write("config.json", config.dump());
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.embeddings->vocabulary, words);
}

TEST(OpenCheckpoint, W1LimitsTheFile) {
  TempFolder folder;
  WriteTinyBert(folder);
  CheckpointOptions options;
  options.max_model_bytes = 100;
  EXPECT_THAT(OpenCheckpoint(folder.path(), options).status().ToString(),
              HasSubstr("model.safetensors: expected at most 100 bytes; got "));
  options = {};
  options.max_header_bytes = 99;
  EXPECT_THAT(OpenCheckpoint(folder.path(), options).status().ToString(),
              HasSubstr("expected a header of at most 99 bytes; got "));
}

TEST(OpenCheckpoint, W15ComparesTheDigest) {
  TempFolder folder;
  WriteTinyBert(folder);
  const std::string digest =
      Sha256(InputFile::Open(folder.File("model.safetensors"), 1 << 20).value()).value();
  EXPECT_TRUE(OpenWithDigest(folder, digest).ok());
  const std::string other(64, 'a');
  const absl::Status wrong = OpenWithDigest(folder, other);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.ToString(), HasSubstr(absl::StrCat("model.safetensors: expected SHA-256 '",
                                                       other, "'; got ", digest)));
  for (const std::string& text : {std::string("abc"), std::string(64, 'A'), std::string(63, '0')}) {
    EXPECT_EQ(OpenWithDigest(folder, text).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(OpenWithDigest(folder, text).ToString(),
                HasSubstr("expected 64 lower-case hexadecimal digits; got '" + text + "'"));
    EXPECT_THAT(OpenWithDigest(TempFolder(), text).ToString(), HasSubstr("weights SHA-256: "));
  }
}

// The layout of the Hugging Face Hub's cache.
TEST(OpenCheckpoint, ReadsASnapshotOfLinks) {
  TempFolder folder;
  folder.Write("blobs/1", TinyBertConfig());
  folder.Write("blobs/2", MakeSafetensors(TinyBertTensors()));
  folder.Write("blobs/3", R"({"model": {}})");
  std::filesystem::create_directories(folder.File("snapshots/c"));
  std::filesystem::create_symlink("../../blobs/1", folder.File("snapshots/c/config.json"));
  std::filesystem::create_symlink("../../blobs/2", folder.File("snapshots/c/model.safetensors"));
  std::filesystem::create_symlink("../../blobs/3", folder.File("snapshots/c/tokenizer.json"));
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.File("snapshots/c"), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tokenization.tokenizer_json, R"({"model": {}})");
  EXPECT_EQ(ReadTensor(*checkpoint, "embeddings.word"),
            TestValues("embeddings.word_embeddings.weight", 40));

  std::filesystem::remove(folder.File("blobs/2"));
  EXPECT_THAT(
      OpenCheckpoint(folder.File("snapshots/c"), {}).status().ToString(),
      HasSubstr("model.safetensors: expected a file; got a symbolic link to a missing file"));
}

// What a clone without git-lfs has in place of large files.
constexpr char kPointer[] =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 90868376\n";

TEST(OpenCheckpoint, SaysWhichFilesArePointersOfGitLfs) {
  for (const char* name : {"config.json", "model.safetensors", "modules.json", "attendant.json"}) {
    TempFolder folder;
    WriteTinyBert(folder);
    folder.Write(name, kPointer);
    EXPECT_EQ(OpenCheckpoint(folder.path(), {}).status().message(),
              absl::StrCat(folder.File(name),
                           ": expected the file itself; got a Git LFS pointer to it; run git lfs "
                           "pull in its directory"));
  }
  TempFolder folder;
  WriteTinyBert(folder);
  folder.Write("tokenizer.json", kPointer);
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->tokenization.why_no_tokenizer,
              AllOf(StartsWith("its tokenizer.json cannot be read: expected the file itself; got "
                               "a Git LFS pointer"),
                    HasSubstr("git lfs pull")));
}

TEST(OpenCheckpoint, ALongFileThatBeginsAsAPointerIsNone) {
  TempFolder folder;
  WriteTinyBert(folder);
  folder.Write("config.json", kPointer + std::string(1000, ' '));
  EXPECT_THAT(OpenCheckpoint(folder.path(), {}).status().ToString(), HasSubstr("refused JSON"));
}

TEST(OpenCheckpoint, SaysWhatAFolderHasInPlaceOfSafetensors) {
  const std::string save = "AutoModel.from_pretrained('ORG/REPO').save_pretrained('DIRECTORY')";
  for (const char* name : {"model.onnx", "onnx/model.onnx", "bge-Q8_0.gguf", "tf_model.h5",
                           "openvino_model.bin", "openvino/openvino_model.bin"}) {
    TempFolder folder;
    folder.Write(name, "x");
    const std::string expected =
        absl::StrCat(folder.path(), ": only safetensors are read; got '", name, "'; save the ");
    EXPECT_THAT(std::string(OpenCheckpoint(folder.path(), {}).status().message()),
                AllOf(StartsWith(expected), HasSubstr(save)));
    folder.Write("config.json", TinyBertConfig());
    EXPECT_THAT(std::string(OpenCheckpoint(folder.path(), {}).status().message()),
                StartsWith(expected));
  }
}

TEST(GitBlobSha1, IsWhatGitPrints) {
  TempFolder folder;
  folder.Write("empty", "");
  folder.Write("hello", "hello\n");
  const auto digest = [&](const char* name) {
    return GitBlobSha1(InputFile::Open(folder.File(name), 100).value()).value();
  };
  EXPECT_EQ(digest("empty"), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(digest("hello"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Sha256, IsTheStandardOne) {
  const char* abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(Sha256("abc").value(), abc);
  TempFolder folder;
  folder.Write("million", std::string(1'500'000, 'a'));
  const InputFile file = InputFile::Open(folder.File("million"), 2'000'000).value();
  EXPECT_EQ(Sha256(file).value(), Sha256(std::string(1'500'000, 'a')).value());
}

}  // namespace checkpoint_test
}  // namespace attendant
