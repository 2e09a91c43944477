#include "client/load_requests/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace input_files_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename Read>
std::string Refusal(const Read& read, const std::string& text) {
  const absl::Status status = read(ScratchFile("input", text)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/input: "));
  return std::string(status.message());
}

TEST(InputFilesTest, LengthsAreOneALine) {
  EXPECT_THAT(*ReadLengths(ScratchFile("lengths", "5\n 512 \r\n\n1")), ElementsAre(5, 512, 1));
  for (const char* line : {"0", "-1", "5 6", "1.5", "x", "16777217"}) {
    EXPECT_THAT(Refusal(ReadLengths, absl::StrCat("7\n\n", line)),
                HasSubstr("line 3: expected a length from 1 to 16777216"));
  }
  EXPECT_THAT(Refusal(ReadLengths, "\n \n"), HasSubstr("has no lines; each must be a length"));
}

TEST(InputFilesTest, IdsAreAListOrAnObjectALine) {
  EXPECT_THAT(*ReadIds(ScratchFile("ids", "[101, 5, 102]\n{\"input_ids\": [7], \"x\": 1}\n")),
              ElementsAre(ElementsAre(101, 5, 102), ElementsAre(7)));
  for (const char* line : {"[]", "[1.5]", "5", "[1", "{\"ids\": [1]}", "[[1]]", "[\"a\"]"}) {
    EXPECT_THAT(Refusal(ReadIds, line), HasSubstr("line 1: expected a JSON list of token ids"));
  }
}

TEST(InputFilesTest, TimestampsCountFromTheFirst) {
  EXPECT_THAT(*ReadTimestamps(ScratchFile("times", "1700000000.5\n1700000000.5\n1700000002\n")),
              ElementsAre(0, 0, DoubleNear(1.5, 1e-6)));
  for (const char* line : {"4.9", "nan", "inf", "now"}) {
    EXPECT_THAT(Refusal(ReadTimestamps, absl::StrCat("5\n", line)),
                HasSubstr("line 2: expected a time in seconds that is not before the one above"));
  }
}

TEST(InputFilesTest, AMissingFileIsNamed) {
  const absl::Status missing = ReadLengths("/nowhere/lengths").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nowhere/lengths"));
}

}  // namespace input_files_test
}  // namespace attendant::client
