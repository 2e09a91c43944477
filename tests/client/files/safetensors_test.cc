#include "client/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace safetensors_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Length(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string File(const std::string& header, const std::string& data) {
  return Length(header.size()) + header + data;
}

absl::StatusOr<Tensor> Read(const std::string& bytes, const std::string& name = "") {
  return ReadSafetensors(ScratchFile("case.safetensors", bytes), name);
}

std::string Refusal(const std::string& bytes, const std::string& name = "") {
  const absl::Status status = Read(bytes, name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("case.safetensors: "));
  return std::string(status.message());
}

constexpr char kTwo[] =
    R"({"__metadata__":{"format":"pt"},"x":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
    R"("y":{"dtype":"U8","shape":[1,3],"data_offsets":[4,7]}})";

TEST(ReadSafetensorsTest, ReadsByName) {
  const std::string bytes = File(kTwo, std::string("\1\0\2\0abc", 7));
  const auto x = Read(bytes, "x");
  ASSERT_TRUE(x.ok()) << x.status();
  EXPECT_THAT(ToInt64s(*x).value(), ElementsAre(1, 2));
  const auto y = Read(bytes, "y");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->shape, ElementsAre(1, 3));
  EXPECT_EQ(y->data, "abc");
}

TEST(ReadSafetensorsTest, TakesTheOnlyTensor) {
  const auto tensor =
      Read(File(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", "\x80\x3F"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(ToFloats(*tensor).value(), ElementsAre(1.0f));
}

TEST(ReadSafetensorsTest, NarrowsFloat64) {
  const auto tensor = Read(File(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})",
                                std::string("\0\0\0\0\0\0\xF8\x3F", 8)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(ToFloats(*tensor).value(), ElementsAre(1.5f));
}

TEST(ReadSafetensorsTest, AsksForANameAndListsThem) {
  const std::string bytes = File(kTwo, std::string(7, '\0'));
  EXPECT_THAT(Refusal(bytes), HasSubstr("holds 2 tensors; name one as FILE:NAME: x, y"));
  EXPECT_THAT(Refusal(bytes, "z"), HasSubstr("has no tensor 'z'; it has x, y"));
  EXPECT_THAT(Refusal(bytes, "__metadata__"), HasSubstr("has no tensor '__metadata__'"));
  EXPECT_THAT(Refusal(File("{}", "")), HasSubstr("holds 0 tensors"));
}

TEST(ReadSafetensorsTest, RefusesHeaderLengths) {
  EXPECT_THAT(Refusal("abc"), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(Refusal(Length(~uint64_t{0}) + "{}"),
              HasSubstr("a header of 18446744073709551615 bytes in a file of 10"));
  EXPECT_THAT(Refusal(Length(3) + "{}"), HasSubstr("a header of 3 bytes in a file of 10"));
}

TEST(ReadSafetensorsTest, RefusesHeadersThatAreNoObject) {
  for (const char* header : {"", "[]", "{", "nonsense", "{\"a\":1,}"}) {
    EXPECT_THAT(Refusal(File(header, "")), HasSubstr("has a header that is not a JSON object"));
  }
}

TEST(ReadSafetensorsTest, RefusesDeepNesting) {
  EXPECT_THAT(Refusal(File(std::string(100000, '['), "")), HasSubstr("nested too deeply"));
  // Brackets in names do not nest.
  EXPECT_TRUE(
      Read(File(R"({"[[[[\"[[":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a")).ok());
}

TEST(ReadSafetensorsTest, RefusesEntries) {
  const auto refusal = [](const std::string& entry) {
    return Refusal(File("{\"a\":" + entry + "}", "abcdefgh"));
  };
  EXPECT_THAT(refusal("1"), HasSubstr("tensor 'a' is not described by a JSON object"));
  for (const char* entry : {
           R"({"shape":[1],"data_offsets":[0,4]})",
           R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})",
           R"({"dtype":"F32","data_offsets":[0,4]})",
           R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})",
           R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})",
           R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})",
           R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})",
           R"({"dtype":"F32","shape":[1],"data_offsets":[0]})",
           R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})",
           R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})",
       }) {
    EXPECT_THAT(refusal(entry), HasSubstr("tensor 'a' needs dtype, shape and data_offsets"))
        << entry;
  }
  EXPECT_THAT(refusal(R"({"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]})"),
              HasSubstr("tensor 'a' has the unknown dtype F8_E4M3"));
}

TEST(ReadSafetensorsTest, RefusesExtents) {
  const auto refusal = [](const std::string& shape, const std::string& offsets) {
    return Refusal(
        File(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
             "abcdefgh"));
  };
  EXPECT_THAT(refusal("[1]", "[4,0]"),
              HasSubstr("tensor 'a' has data_offsets 4..0 in 8 bytes of data"));
  EXPECT_THAT(refusal("[1]", "[8,12]"),
              HasSubstr("tensor 'a' has data_offsets 8..12 in 8 bytes of data"));
  EXPECT_THAT(refusal("[1]", "[0,9223372036854775807]"), HasSubstr("in 8 bytes of data"));
  EXPECT_THAT(refusal("[1]", "[0,8]"),
              HasSubstr("tensor 'a' has 8 bytes, which do not match shape [1] of F32"));
  EXPECT_THAT(refusal("[4611686018427387904]", "[0,0]"),
              HasSubstr("has 0 bytes, which do not match"));
  EXPECT_THAT(refusal("[9223372036854775807,9223372036854775807,0]", "[0,0]"),
              HasSubstr("has 0 bytes, which do not match"));
}

TEST(WriteSafetensorsTest, WritesWhatItReads) {
  const std::string path = ScratchPath("written.safetensors");
  const Tensor a = FloatTensor({1, 2}, {0.5f, -1.0f});
  const Tensor b{DataType::kBFloat16, {1}, "\x80\x3F"};
  ASSERT_TRUE(WriteSafetensors(path, {{"a", a}, {"b.0", b}}).ok());
  const auto read_a = ReadSafetensors(path, "a");
  ASSERT_TRUE(read_a.ok()) << read_a.status();
  EXPECT_EQ(read_a->shape, a.shape);
  EXPECT_EQ(read_a->data, a.data);
  const auto read_b = ReadSafetensors(path, "b.0");
  ASSERT_TRUE(read_b.ok()) << read_b.status();
  EXPECT_EQ(read_b->dtype, DataType::kBFloat16);
  EXPECT_EQ(read_b->data, b.data);
  const std::string bytes = FileBytes(path);
  EXPECT_EQ((bytes.size() - a.data.size() - b.data.size()) % 8, 0u);
}

}  // namespace safetensors_test
}  // namespace attendant::client
