#include "engine/checkpoint/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace safetensors_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kHeaderLimit = int64_t{16} << 20;

absl::StatusOr<SafetensorsFile> OpenContent(const TempFolder& folder, const std::string& content,
                                            int64_t max_header_bytes = kHeaderLimit) {
  folder.Write("m.safetensors", content);
  return OpenSafetensors(folder.File("m.safetensors"), 1 << 20, max_header_bytes);
}

// Returns the message with which a file with this header and data is refused.
std::string Refusal(const std::string& header, const std::string& data = "") {
  TempFolder folder;
  const absl::Status status = OpenContent(folder, WithLength(header, data)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << header;
  EXPECT_THAT(std::string(status.message()), HasSubstr("m.safetensors: "));
  return std::string(status.message());
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return absl::StrCat(R"({"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)",
                      offsets, "}");
}

std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return absl::StrCat(R"({"t":)", Entry(dtype, shape, offsets), "}");
}

TEST(OpenSafetensors, ReadsTheTable) {
  TempFolder folder;
  const std::string header = absl::StrCat(
      R"({"__metadata__":{"format":"pt"},"b":)", Entry("F16", "[2,3]", "[4,16]"), R"(,"a":)",
      Entry("F32", "[]", "[0,4]"), R"(,"empty":)", Entry("I64", "[0,7]", "[16,16]"), R"(,"f4":)",
      Entry("F4", "[4]", "[16,18]"), "}   ");
  const absl::StatusOr<SafetensorsFile> opened =
      OpenContent(folder, WithLength(header, std::string(18, 'x')));
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->tensors.size(), 4u);
  const FileTensor& b = opened->tensors.at("b");
  EXPECT_EQ(b.dtype, "F16");
  EXPECT_EQ(b.data_type, DataType::kFloat16);
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(b.offset, 8 + static_cast<int64_t>(header.size()) + 4);
  EXPECT_EQ(b.bytes, 12);
  EXPECT_EQ(opened->tensors.at("empty").bytes, 0);
  EXPECT_EQ(opened->tensors.at("f4").data_type, std::nullopt);
}

TEST(OpenSafetensors, TakesAFileWithoutTensors) {
  TempFolder folder;
  EXPECT_TRUE(OpenContent(folder, WithLength("{}")).ok());
}

TEST(OpenSafetensors, W1RefusesWhatIsNoFileOfThatSize) {
  TempFolder folder;
  const std::string path = folder.File("m.safetensors");
  const auto refusal = [&] { return OpenSafetensors(path, 100, kHeaderLimit).status(); };
  EXPECT_EQ(refusal().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(refusal().ToString(), HasSubstr("m.safetensors: no such file"));

  folder.Write("m.safetensors", "123456789");
  EXPECT_THAT(refusal().ToString(), HasSubstr("of at least 10 bytes; got 9"));
  folder.Write("m.safetensors", std::string(101, 'x'));
  EXPECT_THAT(refusal().ToString(), HasSubstr("expected at most 100 bytes; got 101"));

  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(refusal().ToString(), HasSubstr("expected a regular file; got a directory"));
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal().ToString(), HasSubstr("expected a regular file; got a device, pipe"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("real", path);
  EXPECT_EQ(refusal().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(refusal().ToString(),
              HasSubstr("expected a file; got a symbolic link to a missing file"));
  ASSERT_EQ(mkfifo(folder.File("real").c_str(), 0600), 0);
  EXPECT_THAT(refusal().ToString(), HasSubstr("expected a regular file; got a device, pipe"));
  std::filesystem::remove(folder.File("real"));
  std::filesystem::create_symlink("m.safetensors", folder.File("real"));
  EXPECT_THAT(refusal().ToString(), HasSubstr("Too many levels of symbolic links"));
}

TEST(OpenSafetensors, FollowsALink) {
  TempFolder folder;
  folder.Write("blob", WithLength("{}"));
  std::filesystem::create_symlink("blob", folder.File("m.safetensors"));
  const absl::StatusOr<SafetensorsFile> opened =
      OpenSafetensors(folder.File("m.safetensors"), 100, kHeaderLimit);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->file.path(), folder.File("m.safetensors"));
}

TEST(OpenSafetensors, W2RefusesBadHeaderLengths) {
  TempFolder folder;
  std::string content = WithLength("{}");
  const auto refusal = [&](unsigned char first, unsigned char others) {
    content[0] = static_cast<char>(first);
    for (int i = 1; i < 8; ++i) content[i] = static_cast<char>(others);
    return OpenContent(folder, content).status().ToString();
  };
  EXPECT_THAT(refusal(3, 0), HasSubstr("expected a header of at most 2 bytes; got 3"));
  EXPECT_THAT(refusal(0xff, 0xff), HasSubstr("at most 2 bytes; got 18446744073709551615"));
  EXPECT_THAT(refusal(0xf8, 0xff), HasSubstr("at most 2 bytes; got 18446744073709551608"));
  EXPECT_THAT(refusal(0, 0), HasSubstr("expected the header to begin with {"));

  EXPECT_THAT(OpenContent(folder, WithLength(absl::StrCat("{}", std::string(9, ' '))), 10)
                  .status()
                  .ToString(),
              HasSubstr("expected a header of at most 10 bytes; got 11"));
  EXPECT_THAT(Refusal(" {}"), HasSubstr("expected the header to begin with {"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("expected the header to begin with {"));
  EXPECT_THAT(Refusal("{}\n"), HasSubstr("expected the header to end with } and optional spaces"));
  EXPECT_THAT(Refusal(std::string("{}\0", 3)), HasSubstr("expected the header to end with }"));
}

TEST(OpenSafetensors, W3RefusesBadJsonAndNames) {
  EXPECT_THAT(Refusal("{\"\xff\":1}"), HasSubstr("not strict JSON in UTF-8 at byte"));
  EXPECT_THAT(Refusal(R"({"t":{"a":[[[]]]}})"), HasSubstr("nested deeper than 4"));
  EXPECT_THAT(Refusal(absl::StrCat("{", std::string(1000, '['), "}")),
              HasSubstr("not strict JSON"));
  EXPECT_THAT(Refusal(absl::StrCat(R"({")", std::string(513, 'n'), R"(":)",
                                   Entry("F32", "[0]", "[0,0]"), "}")),
              HasSubstr("expected a name of at most 512 bytes without NUL"));
  EXPECT_THAT(Refusal(absl::StrCat(R"({"a\u0000b":)", Entry("F32", "[0]", "[0,0]"), "}")),
              HasSubstr(R"('a\x00\x62': expected a name of at most 512 bytes without NUL)"));
  std::string many = "{";
  for (int i = 0; i <= 100'000; ++i) absl::StrAppend(&many, i == 0 ? "" : ",", "\"", i, "\":1");
  const absl::Status status = ParseSafetensorsHeader(absl::StrCat(many, "}"), 0, "f").status();
  EXPECT_THAT(status.ToString(), HasSubstr("f: expected at most 100000 tensors; got 100001"));
}

TEST(OpenSafetensors, W4RefusesTheSameNameTwice) {
  const std::string entry = Entry("F32", "[0]", "[0,0]");
  EXPECT_THAT(Refusal(absl::StrCat(R"({"t":)", entry, R"(,"t":)", entry, "}")),
              HasSubstr("key 't' twice"));
  EXPECT_THAT(Refusal(absl::StrCat(R"({"t":)", entry, R"(,"\u0074":)", entry, "}")),
              HasSubstr("key 't' twice"));
  EXPECT_THAT(Refusal(R"({"t":{"dtype":"F32","dtype":"F32"}})"), HasSubstr("key 'dtype' twice"));
}

TEST(OpenSafetensors, W5RefusesNumbersThatAreNoPlainIntegers) {
  for (const char* shape : {"[-1]", "[1.0]", "[1e0]", "[-0]", "[\"1\"]", "[9223372036854775808]",
                            "1", "null", "[[1]]", "{}"}) {
    EXPECT_THAT(Refusal(One("F32", shape, "[0,4]"), "1234"),
                HasSubstr("'t': expected a shape of at most 8 plain non-negative integers"))
        << shape;
  }
  for (const char* offsets : {"[-4,0]", "[0,4.0]", "[0,4e0]", "[0]", "[0,4,4]", "[4,0]", "null"}) {
    EXPECT_THAT(Refusal(One("F32", "[1]", offsets), "1234"),
                HasSubstr("expected data_offsets of two plain non-negative integers in order"))
        << offsets;
  }
}

TEST(OpenSafetensors, W6RefusesUnknownTypesAndFields) {
  EXPECT_THAT(Refusal(One("F128", "[1]", "[0,16]"), std::string(16, 'x')),
              HasSubstr("'t': expected a dtype of the format; got 'F128'"));
  EXPECT_THAT(Refusal(One("f32", "[1]", "[0,4]"), "1234"), HasSubstr("got 'f32'"));
  EXPECT_THAT(Refusal(R"({"t":{"dtype":5,"shape":[],"data_offsets":[0,0]}})"),
              HasSubstr("expected a dtype of the format; got 5"));
  for (const char* entry : {"5", "[]", R"({"dtype":"F32","shape":[0]})",
                            R"({"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1})"}) {
    EXPECT_THAT(Refusal(absl::StrCat(R"({"t":)", entry, "}")),
                HasSubstr("expected an object with only dtype, shape and data_offsets"));
  }
}

TEST(OpenSafetensors, W7RefusesSizesThatOverflow) {
  const char* kBig = "4294967296";
  for (const std::string& shape :
       {absl::StrCat("[", kBig, ",", kBig, "]"), absl::StrCat("[0,", kBig, ",", kBig, "]"),
        absl::StrCat("[", kBig, ",", kBig, ",0]"), std::string("[2305843009213693952]")}) {
    EXPECT_THAT(Refusal(One("F32", shape, "[0,0]")), HasSubstr("expected a size in whole bytes"))
        << shape;
  }
  EXPECT_THAT(Refusal(One("F4", "[3]", "[0,1]"), "1"), HasSubstr("got F4 [3]"));
  EXPECT_THAT(Refusal(One("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "1234"),
              HasSubstr("expected a shape of at most 8"));
}

TEST(OpenSafetensors, W8RefusesDataThatIsNotCoveredOnce) {
  EXPECT_THAT(Refusal(One("F32", "[2]", "[0,4]"), "1234"),
              HasSubstr("'t': expected 8 bytes for F32 [2]; got 4 between its data_offsets"));
  EXPECT_THAT(Refusal(One("F32", "[0]", "[0,4]"), "1234"), HasSubstr("expected 0 bytes"));
  EXPECT_THAT(Refusal(One("F32", "[1]", "[4,8]"), "12345678"),
              HasSubstr("'t': expected to begin at byte 0 of the data"));
  EXPECT_THAT(Refusal(One("F32", "[1]", "[0,4]"), "123"),
              HasSubstr("expected 4 bytes of data after the header; got 3"));
  EXPECT_THAT(Refusal(One("F32", "[1]", "[0,4]"), "12345"),
              HasSubstr("expected 4 bytes of data after the header; got 5"));
  const auto two = [](const std::string& first, const std::string& second) {
    return absl::StrCat(R"({"a":)", Entry("F32", "[1]", first), R"(,"b":)",
                        Entry("F32", "[1]", second), "}");
  };
  EXPECT_THAT(
      Refusal(two("[0,4]", "[5,9]"), "123456789"),
      HasSubstr(
          "'b': expected to begin at byte 4 of the data, where the previous tensor ends; got 5"));
  EXPECT_THAT(Refusal(two("[0,4]", "[2,6]"), "123456"), HasSubstr("begin at byte 4"));
  EXPECT_THAT(Refusal(two("[0,4]", "[0,4]"), "1234"), HasSubstr("begin at byte 4"));
}

TEST(OpenSafetensors, W9RefusesMetadataThatIsNotText) {
  EXPECT_THAT(Refusal(R"({"__metadata__":{"a":1}})"),
              HasSubstr("__metadata__: expected an object of strings"));
  EXPECT_THAT(Refusal(R"({"__metadata__":"a"})"), HasSubstr("__metadata__: expected an object"));
}

TEST(OpenSafetensors, TellsAllProblemsAtOnce) {
  EXPECT_THAT(
      Refusal(absl::StrCat(R"({"a":1,"b":)", Entry("X", "[1]", "[0,4]"), R"(,"__metadata__":1})")),
      AllOf(HasSubstr("3 problems: "), HasSubstr("'a'"), HasSubstr("'b'"),
            HasSubstr("__metadata__")));
}

// Any bytes lead to a refusal, or to a table whose tensors lie inside the data.
TEST(ParseSafetensorsHeader, HoldsItsPromiseForMutatedHeaders) {
  const std::string valid = absl::StrCat(
      R"({"__metadata__":{"a":"b"},"x":)", Entry("F32", "[2,3]", "[0,24]"), R"(,"y\u0041":)",
      Entry("BF16", "[1,0,9]", "[24,24]"), R"(,"z":)", Entry("F4", "[4]", "[24,26]"), "}  ");
  constexpr int64_t kDataBytes = 26;
  const std::string alphabet = "0123456789-+.eE{}[]:,\"\\ \xff" + std::string(1, '\0');
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string header = valid;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % header.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 4) {
        case 0:
          header.erase(at, 1 + random() % 4);
          break;
        case 1:
          header.insert(at, 1, c);
          break;
        case 2:
          header.insert(at, header, at, 1 + random() % 40);
          break;
        default:
          header[at] = c;
      }
    }
    const absl::StatusOr<TensorTable> tensors = ParseSafetensorsHeader(header, kDataBytes, "f");
    if (!tensors.ok()) {
      EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    const int64_t begin = 8 + static_cast<int64_t>(header.size());
    for (const auto& [name, tensor] : *tensors) {
      EXPECT_GE(tensor.offset, begin) << header;
      EXPECT_LE(tensor.offset + tensor.bytes, begin + kDataBytes) << header;
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace safetensors_test
}  // namespace attendant
