#include "engine/checkpoint/files/file_weights.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace file_weights_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Makes a file 'data' that the one tensor 'w' fills.
class FileWeightsTest : public ::testing::Test {
 protected:
  FileWeights Open(const std::string& bytes, DataType type, const AllowedValues& allowed = {},
                   const std::string& name = "layer.0.key.weight") {
    folder_.Write("data", bytes);
    std::vector<InputFile> files;
    files.push_back(InputFile::Open(folder_.File("data"), 1 << 30).value());
    const auto elements = static_cast<int64_t>(bytes.size()) / ByteWidth(type);
    values_.assign(elements, 0);
    return FileWeights(std::move(files), {{name, {{0, "w", type, 0, elements}}}}, allowed);
  }

  absl::Status Read(FileWeights& weights, const std::string& name = "layer.0.key.weight") {
    return weights.Read(name, absl::MakeSpan(values_));
  }

  TempFolder folder_;
  std::vector<float> values_;
};

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST_F(FileWeightsTest, ReadsTensorsOfManyChunks) {
  for (const auto& [dtype, type] :
       std::vector<std::pair<std::string, DataType>>{{"F32", DataType::kFloat32},
                                                     {"F16", DataType::kFloat16},
                                                     {"BF16", DataType::kBFloat16},
                                                     {"F64", DataType::kFloat64}}) {
    const std::vector<float> expected = TestValues(dtype, 600'001);
    FileWeights weights = Open(Encode(expected, dtype), type);
    EXPECT_TRUE(weights.Has("layer.0.key.weight"));
    EXPECT_FALSE(weights.Has("layer.0.key.bias"));
    EXPECT_TRUE(Read(weights).ok());
    EXPECT_EQ(values_, expected) << dtype;
  }
}

TEST_F(FileWeightsTest, ReadsTensorsAsTheyAreStored) {
  const std::string name = "layer.0.key.weight";
  for (const auto& [dtype, type] :
       std::vector<std::pair<std::string, DataType>>{{"F32", DataType::kFloat32},
                                                     {"F16", DataType::kFloat16},
                                                     {"BF16", DataType::kBFloat16}}) {
    const std::string bytes = Encode(TestValues(dtype, 600'001), dtype);
    FileWeights weights = Open(bytes, type);
    std::string stored(bytes.size(), 'x');
    EXPECT_TRUE(weights.ReadStored(name, type, absl::MakeSpan(stored)).value()) << dtype;
    EXPECT_EQ(stored, bytes) << dtype;
    // In no other type.
    std::string other(600'001 * 8, 'x');
    EXPECT_FALSE(weights.ReadStored(name, DataType::kFloat64, absl::MakeSpan(other)).value());
    EXPECT_THAT(weights.ReadStored(name, type, absl::MakeSpan(stored).first(10)).status().message(),
                HasSubstr("has 600001 elements for"));
    EXPECT_EQ(weights.ReadStored("none", type, absl::MakeSpan(stored)).status().code(),
              absl::StatusCode::kNotFound);
  }
}

TEST_F(FileWeightsTest, W12RefusesStoredValuesThatAreNotFinite) {
  std::vector<uint16_t> in_file(700'000, 0x3f80);
  in_file[600'123] = 0x7fc0;
  std::string stored(in_file.size() * 2, 'x');
  FileWeights nan = Open(Bytes(in_file), DataType::kBFloat16);
  const auto read = [&](FileWeights& weights) {
    return weights.ReadStored("layer.0.key.weight", DataType::kBFloat16, absl::MakeSpan(stored));
  };
  EXPECT_THAT(read(nan).status().message(),
              HasSubstr("expected finite values; got nan at element 600123"));
  FileWeights allowed = Open(Bytes(in_file), DataType::kBFloat16, {.allow_nonfinite = true});
  EXPECT_TRUE(read(allowed).value());
}

TEST_F(FileWeightsTest, ReadsAnyAlignment) {
  folder_.Write("data", absl::StrCat("x", Bytes<double>({1.5, 1e-300, 0.1})));
  std::vector<InputFile> files;
  files.push_back(InputFile::Open(folder_.File("data"), 100).value());
  FileWeights weights(std::move(files), {{"b", {{0, "w", DataType::kFloat64, 1, 3}}}}, {});
  values_.resize(3);
  ASSERT_TRUE(Read(weights, "b").ok());
  EXPECT_THAT(values_, ElementsAre(1.5f, 0.0f, 0.1f));
}

TEST_F(FileWeightsTest, W12RefusesValuesThatAreNotFinite) {
  std::vector<float> in_file(300'000, 1.0f);
  in_file[270'000] = NAN;
  FileWeights nan = Open(Bytes(in_file), DataType::kFloat32);
  EXPECT_EQ(Read(nan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Read(nan).ToString(),
              HasSubstr("data: tensor 'w': expected finite values; got nan at element 270000"));
  FileWeights infinite = Open(Bytes<uint16_t>({0x3c00, 0xfc00}), DataType::kFloat16);
  EXPECT_THAT(Read(infinite).ToString(), HasSubstr("got -inf at element 1"));
  FileWeights wide = Open(Bytes<double>({1, INFINITY}), DataType::kFloat64);
  EXPECT_THAT(Read(wide).ToString(), HasSubstr("got inf at element 1"));
}

TEST_F(FileWeightsTest, W12AllowsThemIfAsked) {
  FileWeights weights =
      Open(Bytes<float>({1, NAN, kInfinity}), DataType::kFloat32, {.allow_nonfinite = true});
  ASSERT_TRUE(Read(weights).ok());
  EXPECT_TRUE(std::isnan(values_[1]));
  EXPECT_EQ(values_[2], kInfinity);
}

TEST_F(FileWeightsTest, W12RefusesValuesBeyondFloat32) {
  for (const bool allow_nonfinite : {false, true}) {
    FileWeights weights = Open(Bytes<double>({1, -1e39}), DataType::kFloat64, {allow_nonfinite});
    EXPECT_EQ(Read(weights).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Read(weights).ToString(),
                HasSubstr("'w': expected values that float32 holds; got -1e+39 at element 1"));
  }
}

TEST_F(FileWeightsTest, W12RefusesNormsThatAreZero) {
  const std::string name = "layer.0.attention_norm.weight";
  FileWeights zero = Open(Bytes<float>({0, -0.0f}), DataType::kFloat32, {}, name);
  EXPECT_EQ(Read(zero, name).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Read(zero, name).ToString(),
              HasSubstr("'w': expected a norm weight with non-zero values; all are zero"));
  FileWeights other = Open(Bytes<float>({0, 1}), DataType::kFloat32, {}, name);
  EXPECT_TRUE(Read(other, name).ok());
  // Where norms multiply by 1 + their weights.
  FileWeights one =
      Open(Bytes<float>({0, 0}), DataType::kFloat32, {.allow_zero_norms = true}, name);
  EXPECT_TRUE(Read(one, name).ok());
  const std::string bias = "layer.0.attention_norm.bias";
  FileWeights zero_bias = Open(Bytes<float>({0, 0}), DataType::kFloat32, {}, bias);
  EXPECT_TRUE(Read(zero_bias, bias).ok());
}

TEST_F(FileWeightsTest, W1RefusesAFileThatChanged) {
  const std::string content = Bytes<float>({1, 2, 3});
  FileWeights truncated = Open(content, DataType::kFloat32);
  std::filesystem::resize_file(folder_.File("data"), 6);
  EXPECT_EQ(Read(truncated).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Read(truncated).ToString(),
              HasSubstr("data: changed while it was read: expected 12 bytes; got 6"));

  FileWeights grown = Open(content, DataType::kFloat32);
  std::filesystem::resize_file(folder_.File("data"), 13);
  EXPECT_THAT(Read(grown).ToString(), HasSubstr("data: changed while it was read"));

  FileWeights touched = Open(content, DataType::kFloat32);
  struct timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, folder_.File("data").c_str(), times, 0), 0);
  EXPECT_THAT(Read(touched).ToString(), HasSubstr("data: changed while it was read"));

  FileWeights replaced = Open(content, DataType::kFloat32);
  const auto time = std::filesystem::last_write_time(folder_.File("data"));
  folder_.Write("new", content);
  std::filesystem::last_write_time(folder_.File("new"), time);
  std::filesystem::rename(folder_.File("new"), folder_.File("data"));
  EXPECT_THAT(Read(replaced).ToString(), HasSubstr("data: changed while it was read"));

  // A link to the same file is that file, and a link to another one is not.
  FileWeights linked = Open(content, DataType::kFloat32);
  std::filesystem::rename(folder_.File("data"), folder_.File("blob"));
  std::filesystem::create_symlink("blob", folder_.File("data"));
  EXPECT_TRUE(Read(linked).ok());
  folder_.Write("other", content);
  std::filesystem::remove(folder_.File("data"));
  std::filesystem::create_symlink("other", folder_.File("data"));
  EXPECT_THAT(Read(linked).ToString(), HasSubstr("data: changed while it was read"));
  std::filesystem::remove(folder_.File("data"));

  FileWeights removed = Open(content, DataType::kFloat32);
  std::filesystem::remove(folder_.File("data"));
  EXPECT_THAT(Read(removed).ToString(), HasSubstr("data: changed while it was read"));
}

TEST_F(FileWeightsTest, RefusesOtherTensorsAndSizes) {
  FileWeights weights = Open(Bytes<float>({1, 2, 3}), DataType::kFloat32);
  EXPECT_EQ(Read(weights, "x").code(), absl::StatusCode::kNotFound);
  values_.resize(2);
  EXPECT_THAT(Read(weights).ToString(),
              HasSubstr("has 3 elements for 'layer.0.key.weight', the target 2"));
}

}  // namespace file_weights_test
}  // namespace attendant
