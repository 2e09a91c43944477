#include "client/files/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace tensor_file_test {

using testing::HasSubstr;

TEST(TensorFileTest, RoundTripsByExtension) {
  const Tensor tensor = FloatTensor({2}, {1.0f, 2.0f});
  for (const std::string name : {"t.npy", "t.safetensors"}) {
    const std::string path = ScratchPath(name);
    ASSERT_TRUE(WriteTensors(path, {{"only", tensor}}).ok());
    const auto back = ReadTensor(path);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->data, tensor.data);
  }
  EXPECT_TRUE(ReadTensor(ScratchPath("t.safetensors") + ":only").ok());
  EXPECT_THAT(std::string(ReadTensor(ScratchPath("t.safetensors") + ":x").status().message()),
              HasSubstr("has no tensor 'x'"));
}

TEST(TensorFileTest, NameMayHaveColons) {
  const std::string path = ScratchPath("colon.safetensors");
  ASSERT_TRUE(
      WriteTensors(path, {{"a:b", FloatTensor({0}, {})}, {"c", FloatTensor({0}, {})}}).ok());
  EXPECT_TRUE(ReadTensor(path + ":a:b").ok());
}

TEST(TensorFileTest, RefusesOtherExtensions) {
  EXPECT_EQ(ReadTensor("x.bin").status().message(),
            "x.bin: expected FILE.npy, FILE.safetensors or FILE.safetensors:NAME");
  EXPECT_EQ(CheckWritable("x.bin", 1).message(),
            "x.bin: expected a name ending in .npy or .safetensors");
}

TEST(TensorFileTest, NpyTakesOneTensor) {
  EXPECT_TRUE(CheckWritable("x.npy", 1).ok());
  EXPECT_EQ(CheckWritable("x.npy", 2).message(),
            "x.npy: expected one tensor for .npy; got 2; write to .safetensors");
  EXPECT_TRUE(CheckWritable("x.safetensors", 2).ok());
}

}  // namespace tensor_file_test
}  // namespace attendant::client
