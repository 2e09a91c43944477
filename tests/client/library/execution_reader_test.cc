#include "client/execution_reader.h"

#include <gtest/gtest.h>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant::client {
namespace execution_reader_test {

constexpr int kField = v1::AttendResponse::kExecutionFieldNumber;

// Returns the bytes in slices of `slice` bytes, as they may come off the wire.
grpc::ByteBuffer Sliced(const std::string& bytes, size_t slice) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += slice) slices.emplace_back(bytes.substr(i, slice));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Answer() {
  v1::AttendResponse response;
  response.mutable_output()->set_data(std::string(300, 'x'));
  response.mutable_execution()->set_queue_ns(1500);
  response.mutable_execution()->set_tokens(7);
  return response.SerializeAsString();
}

TEST(ReadExecutionTest, FindsItBehindTheTensorsWhereverSlicesAreCut) {
  for (size_t slice = 1; slice < 20; ++slice) {
    grpc::ByteBuffer buffer = Sliced(Answer(), slice);
    const auto execution = ReadExecution(buffer, kField);
    ASSERT_TRUE(execution.ok()) << execution.status();
    EXPECT_EQ(execution->queue, absl::Nanoseconds(1500));
    EXPECT_EQ(execution->tokens, 7);
  }
}

TEST(ReadExecutionTest, MergesRepeatsLikeAnyParser) {
  v1::AttendResponse more;
  more.mutable_execution()->set_tokens(9);
  grpc::ByteBuffer buffer = Sliced(Answer() + more.SerializeAsString(), 100);
  const auto execution = ReadExecution(buffer, kField);
  ASSERT_TRUE(execution.ok()) << execution.status();
  EXPECT_EQ(execution->queue, absl::Nanoseconds(1500));
  EXPECT_EQ(execution->tokens, 9);
}

TEST(ReadExecutionTest, AbsentIsAllZero) {
  grpc::ByteBuffer buffer = Sliced(v1::AttendResponse().SerializeAsString(), 1);
  EXPECT_EQ(ReadExecution(buffer, kField).value().tokens, 0);
}

TEST(ReadExecutionTest, CutAnywhereItIsNoMessage) {
  const std::string whole = Answer();
  const size_t tensor = whole.size() - 2 - 5;  // execution: tag, size, 5 bytes
  for (size_t end = 1; end < whole.size(); ++end) {
    if (end == tensor) continue;  // a message without execution
    grpc::ByteBuffer buffer = Sliced(whole.substr(0, end), 64);
    EXPECT_EQ(ReadExecution(buffer, kField).status().code(), absl::StatusCode::kInternal) << end;
  }
}

std::string StreamedAnswer() {
  v1::EncodeStreamResponse item;
  item.set_id(300);
  item.mutable_response()->mutable_hidden_states()->set_data(std::string(300, 'x'));
  item.mutable_response()->mutable_execution()->set_tokens(7);
  return item.SerializeAsString();
}

TEST(ReadRawAnswerTest, KeepsEverythingButTheExecutionAsItCame) {
  v1::AttendResponse after;
  after.mutable_weighted_values()->set_data("yz");
  v1::AttendResponse content;
  content.mutable_output()->set_data(std::string(300, 'x'));
  for (size_t slice = 1; slice < 20; ++slice) {
    grpc::ByteBuffer buffer = Sliced(Answer() + after.SerializeAsString(), slice);
    const absl::StatusOr<RawAnswer> answer = ReadRawAnswer(buffer, kField);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->execution.tokens, 7);
    EXPECT_EQ(answer->content, content.SerializeAsString() + after.SerializeAsString());
  }
}

TEST(ReadRawAnswerTest, WithoutAnExecutionItIsTheWholeAnswer) {
  grpc::ByteBuffer buffer = Sliced("any bytes", 4);
  EXPECT_EQ(ReadRawAnswer(buffer, 0)->content, "any bytes");
  EXPECT_EQ(ReadExecution(buffer, 0)->tokens, 0);
}

TEST(ReadRawAnswerTest, CutInsideAFieldItIsNoMessage) {
  const std::string whole = Answer();
  for (const size_t end : {size_t{1}, size_t{200}, whole.size() - 1}) {
    grpc::ByteBuffer buffer = Sliced(whole.substr(0, end), 64);
    EXPECT_EQ(ReadRawAnswer(buffer, kField).status().code(), absl::StatusCode::kInternal) << end;
  }
}

TEST(ReadStreamAnswerTest, FindsIdAndExecutionWhereverSlicesAreCut) {
  for (size_t slice = 1; slice < 20; ++slice) {
    grpc::ByteBuffer buffer = Sliced(StreamedAnswer(), slice);
    const auto answer = ReadStreamAnswer(buffer);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->id, 300u);
    EXPECT_EQ(answer->execution.value().tokens, 7);
  }
}

TEST(ReadStreamAnswerTest, AnErrorIsTheItemsStatus) {
  v1::EncodeStreamResponse item;
  item.set_id(1);
  item.mutable_error()->set_code(5);
  item.mutable_error()->set_message("no such model");
  grpc::ByteBuffer buffer = Sliced(item.SerializeAsString(), 3);
  EXPECT_EQ(ReadStreamAnswer(buffer).value().execution.status(),
            absl::NotFoundError("no such model"));
}

TEST(ReadStreamAnswerTest, CutInsideItsResponseItIsNoMessage) {
  const std::string whole = StreamedAnswer();
  for (size_t end = 4; end < whole.size(); ++end) {
    grpc::ByteBuffer buffer = Sliced(whole.substr(0, end), 64);
    EXPECT_EQ(ReadStreamAnswer(buffer).status().code(), absl::StatusCode::kInternal) << end;
  }
}

}  // namespace execution_reader_test
}  // namespace attendant::client
