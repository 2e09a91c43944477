#include "client/load_test/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace request_log_test {

TEST(RequestLogTest, WritesALineForEachRequest) {
  const std::string path = ScratchPath("requests.jsonl");
  const absl::StatusOr<std::unique_ptr<RequestLog>> log = RequestLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status();
  RequestRecord record = {.index = 3,
                          .measured = true,
                          .intended = absl::Seconds(1),
                          .sent = absl::Seconds(1.25),
                          .answered = absl::Seconds(2),
                          .tokens = 17};
  record.execution.queue = absl::Microseconds(1500);
  record.execution.copy = absl::Microseconds(250);
  record.execution.compute = absl::Milliseconds(8);
  (*log)->Add(record);
  (*log)->Flush();
  (*log)->BeginStep(1);
  (*log)->Add(
      {.index = 4, .intended = absl::Seconds(-0.5), .code = absl::StatusCode::kResourceExhausted});
  EXPECT_EQ((*log)->Close(), absl::OkStatus());
  EXPECT_EQ(FileBytes(path),
            R"({"step":0,"index":3,"measured":true,"intended_s":1.000000000,"sent_s":1.250000000,)"
            R"("answered_s":2.000000000,"status":"OK","tokens":17,"queue_ms":1.500000,)"
            R"("copy_ms":0.250000,"compute_ms":8.000000})"
            "\n"
            R"({"step":1,"index":4,"measured":false,"intended_s":-0.500000000,)"
            R"("sent_s":0.000000000,"answered_s":0.000000000,"status":"RESOURCE_EXHAUSTED",)"
            R"("tokens":0})"
            "\n");
}

TEST(RequestLogTest, SaysWhichFileCannotBeWritten) {
  const absl::Status refused = RequestLog::Open("/nowhere/requests.jsonl").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()),
              testing::StartsWith("cannot write /nowhere/requests.jsonl"));
}

TEST(RequestLogTest, SaysThatTheDiskIsFull) {
  const absl::StatusOr<std::unique_ptr<RequestLog>> log = RequestLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Add({});
  const absl::Status lost = (*log)->Close();
  EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(lost.message(), "could not write all of /dev/full");
}

}  // namespace request_log_test
}  // namespace attendant::client
