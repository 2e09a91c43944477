#include "client/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace npy_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  if (version == 2) bytes += std::string(2, '\0');
  return bytes + header + data;
}

std::string Header(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }   \n";
}

absl::StatusOr<Tensor> Read(const std::string& bytes) {
  return ReadNpy(ScratchFile("case.npy", bytes));
}

std::string Refusal(const std::string& bytes) {
  const absl::Status status = Read(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("case.npy: "));
  return std::string(status.message());
}

TEST(ReadNpyTest, ReadsBothVersions) {
  const std::string data("\0\0\x80\x3F\0\0\0\x40", 8);
  for (char version : {'\1', '\2'}) {
    const auto tensor = Read(Npy(Header("<f4", "(1, 2)"), data, version));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype, DataType::kFloat32);
    EXPECT_THAT(tensor->shape, ElementsAre(1, 2));
    EXPECT_THAT(ToFloats(*tensor).value(), ElementsAre(1.0f, 2.0f));
  }
}

TEST(ReadNpyTest, ReadsEveryType) {
  const std::pair<const char*, DataType> types[] = {
      {"<f2", DataType::kFloat16}, {"|b1", DataType::kBool},   {"|i1", DataType::kInt8},
      {"|u1", DataType::kUInt8},   {"<i2", DataType::kInt16},  {"<u2", DataType::kUInt16},
      {"<i4", DataType::kInt32},   {"<u4", DataType::kUInt32}, {"<i8", DataType::kInt64},
      {"<u8", DataType::kUInt64}};
  for (const auto& [descr, dtype] : types) {
    const std::string data(static_cast<size_t>(3 * ByteWidth(dtype)), '\1');
    const auto tensor = Read(Npy(Header(descr, "(3,)"), data));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype, dtype);
    EXPECT_EQ(tensor->data, data);
  }
}

TEST(ReadNpyTest, NarrowsFloat64) {
  const auto tensor = Read(Npy(Header("<f8", "(1,)"), std::string("\0\0\0\0\0\0\xF8\x3F", 8)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(ToFloats(*tensor).value(), ElementsAre(1.5f));
}

TEST(ReadNpyTest, ReadsScalarsAndEmptyArrays) {
  EXPECT_THAT(Read(Npy(Header("|u1", "()"), "\1")).value().shape, ElementsAre());
  EXPECT_THAT(Read(Npy(Header("<f4", "(0, 4)"), "")).value().shape, ElementsAre(0, 4));
}

TEST(ReadNpyTest, RefusesFortranOrder) {
  const std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }\n";
  EXPECT_THAT(Refusal(Npy(header, std::string(8, '\0'))),
              HasSubstr("is in Fortran order; save numpy.ascontiguousarray(array) instead"));
}

TEST(ReadNpyTest, RefusesOtherTypes) {
  for (const char* descr : {">f4", "|O", "<c8", "<U3", "<f16"}) {
    EXPECT_THAT(Refusal(Npy(Header(descr, "(1,)"), "abcd")),
                HasSubstr(std::string("holds elements of type '") + descr + "'; expected"));
  }
}

TEST(ReadNpyTest, RefusesWrongSizes) {
  const std::string message = "has 4 bytes of data, which do not match shape [2] of '<f4'";
  EXPECT_THAT(Refusal(Npy(Header("<f4", "(2,)"), "abcd")), HasSubstr(message));
  EXPECT_THAT(Refusal(Npy(Header("<f4", "(9223372036854775807,)"), "abcd")),
              HasSubstr("has 4 bytes"));
  EXPECT_THAT(Refusal(Npy(Header("<f4", "(4294967296, 4294967296)"), "")),
              HasSubstr("has 0 bytes"));
  EXPECT_THAT(Refusal(Npy(Header("<f4", "(4294967296, 4294967296, 0)"), "")),
              HasSubstr("has 0 bytes"));
}

TEST(ReadNpyTest, RefusesHeadersItDoesNotUnderstand) {
  const char* headers[] = {
      "",
      "{",
      "{}",
      "[1]",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
      "{'descr': '<f4', 'shape': (1,)}",
      "{'descr': '<f4' 'fortran_order': False}",
      "{'descr: <f4}",
  };
  for (const char* header : headers) {
    EXPECT_THAT(Refusal(Npy(header, "abcd")), HasSubstr("has an unsupported header")) << header;
  }
}

TEST(ReadNpyTest, RefusesHugeRank) {
  std::string shape = "(";
  for (int i = 0; i < 1000; ++i) shape += "1, ";
  EXPECT_THAT(Refusal(Npy(Header("|u1", shape + ")"), "a")), HasSubstr("unsupported header"));
}

TEST(ReadNpyTest, RefusesTruncationAnywhere) {
  const std::string whole = Npy(Header("<f4", "(1, 2)"), std::string(8, '\0'));
  for (size_t end = 0; end < whole.size(); ++end) {
    EXPECT_FALSE(Read(whole.substr(0, end)).ok()) << end;
  }
}

TEST(ReadNpyTest, RefusesHugeHeaderLengthBeforeReadingIt) {
  std::string bytes("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF", 12);
  EXPECT_THAT(Refusal(bytes), HasSubstr("has a header of 4294967295 bytes, more than 65536"));
}

TEST(ReadNpyTest, RefusesOtherFiles) {
  EXPECT_THAT(Refusal("PK\3\4 a zip, as .npz is"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(Refusal(Npy(Header("<f4", "()"), "abcd", 3)),
              HasSubstr("has .npy format version 3; expected 1 or 2"));
  EXPECT_EQ(ReadNpy("/nowhere.npy").status(), absl::NotFoundError("/nowhere.npy: no such file"));
  EXPECT_EQ(ReadNpy("/").status(), absl::InvalidArgumentError("/: not a regular file"));
}

TEST(WriteNpyTest, WritesWhatItReads) {
  const std::string path = ScratchPath("written.npy");
  const std::vector<int64_t> shapes[] = {{}, {3}, {2, 3}, {1, 2, 3}};
  for (const std::vector<int64_t>& shape : shapes) {
    const std::vector<float> values(static_cast<size_t>(ElementCount(shape).value()), 0.25f);
    ASSERT_TRUE(WriteNpy(path, FloatTensor(shape, values)).ok());
    const auto back = ReadNpy(path);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(ToFloats(*back).value(), values);
    EXPECT_EQ((FileBytes(path).size() - values.size() * sizeof(float)) % 64, 0u);
  }
}

TEST(WriteNpyTest, RefusesBFloat16) {
  EXPECT_EQ(WriteNpy("x.npy", {DataType::kBFloat16, {0}, ""}).message(),
            "x.npy: .npy has no bfloat16; write to a .safetensors file");
}

TEST(WriteNpyTest, ReportsWhatCannotBeWritten) {
  EXPECT_EQ(WriteNpy("/nowhere/x.npy", FloatTensor({0}, {})).message(),
            "/nowhere/x.npy: cannot be written");
}

}  // namespace npy_test
}  // namespace attendant::client
