// Tests of EncodeStream over a socket: ids, errors of items, window, cancellation and drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "server/admission/recent_size.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"

namespace attendant::server {
namespace encode_stream_test {

using ::testing::HasSubstr;

constexpr char kEncodeStream[] = "/attendant.v1.EncoderService/EncodeStream";

v1::EncodeStreamRequest Item(uint64_t id, int64_t first_token = 1) {
  v1::EncodeStreamRequest item;
  item.set_id(id);
  item.mutable_request()->set_model("tiny");
  *item.mutable_request()->mutable_token_ids() =
      IntegerTensor({1, 2}, {first_token, first_token + 1});
  return item;
}

class EncodeStreamTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::EncodeStreamRequest, v1::EncodeStreamResponse>;

  void Start(TestServerOptions options = {}) {
    server_ = std::make_unique<TestServer>(options);
    stream_ = server_->stub().EncodeStream(&context_);
  }

  // Returns every answer that arrives before the stream ends, by id.
  std::map<uint64_t, v1::EncodeStreamResponse> ReadAll() {
    std::map<uint64_t, v1::EncodeStreamResponse> answers;
    v1::EncodeStreamResponse answer;
    while (stream_->Read(&answer)) {
      EXPECT_EQ(answers.count(answer.id()), 0u);
      answers[answer.id()] = answer;
    }
    return answers;
  }

  // Reads to the end.
  void ExpectAllComputed(size_t items) {
    const auto answers = ReadAll();
    EXPECT_EQ(answers.size(), items);
    for (const auto& [id, answer] : answers) {
      EXPECT_FALSE(answer.has_error()) << id << ": " << answer.error().message();
    }
    EXPECT_TRUE(stream_->Finish().ok());
  }

  std::unique_ptr<TestServer> server_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(EncodeStreamTest, ABadItemAmongGoodOnes) {
  Start();
  ASSERT_TRUE(stream_->Write(Item(7, 1)));
  ASSERT_TRUE(stream_->Write(Item(8, 99)));  // 100 is not in the vocabulary
  v1::EncodeStreamRequest lost = Item(9, 1);
  lost.mutable_request()->set_model("none");
  ASSERT_TRUE(stream_->Write(lost));
  v1::EncodeStreamRequest empty;
  empty.set_id(10);
  ASSERT_TRUE(stream_->Write(empty));
  ASSERT_TRUE(stream_->Write(Item(11, 3)));
  ASSERT_TRUE(stream_->WritesDone());
  const auto answers = ReadAll();
  EXPECT_TRUE(stream_->Finish().ok());
  ASSERT_EQ(answers.size(), 5u);
  for (uint64_t id : {7u, 11u}) {
    v1::EncodeResponse alone;
    ASSERT_TRUE(server_->Encode(Item(id, id == 7 ? 1 : 3).request(), &alone).ok());
    EXPECT_FALSE(answers.at(id).has_error());
    EXPECT_EQ(answers.at(id).response().hidden_states().data(), alone.hidden_states().data());
    EXPECT_EQ(answers.at(id).response().execution().tokens(), 2);
  }
  EXPECT_FALSE(answers.at(8).has_response());
  EXPECT_EQ(answers.at(8).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answers.at(8).error().message(), "token_ids[0, 1]: expected 0..99; got 100");
  EXPECT_EQ(answers.at(9).error().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(answers.at(9).error().message(),
              testing::StartsWith(
                  "model: not found (no model is named \"none\"); the models are \"bare\", "));
  EXPECT_EQ(answers.at(10).error().message(), "request: expected an EncodeRequest; got none");
  server_->ExpectMetrics(HasSubstr("{code=\"OK\",method=\"EncodeStream\",model=\"tiny\"} 2\n"));
}

TEST_F(EncodeStreamTest, AnEmptyStreamIsFine) {
  Start();
  stream_->WritesDone();
  EXPECT_TRUE(ReadAll().empty());
  EXPECT_TRUE(stream_->Finish().ok());
  server_->AwaitStreams(0);
}

TEST_F(EncodeStreamTest, AnIdleStreamIsEnded) {
  TestServerOptions options;
  options.limits.stream_idle_timeout = absl::Milliseconds(50);
  Start(options);
  EXPECT_TRUE(ReadAll().empty());
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(),
            "the stream's next item did not arrive within 50ms (--stream-idle-timeout)");
  server_->AwaitStreams(0);
}

TEST_F(EncodeStreamTest, ReadsNoFurtherThanItsWindow) {
  TestServerOptions options;
  options.gate_closed = true;
  options.limits.stream_window = 4;
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  for (uint64_t id = 1; id < 12; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  ASSERT_TRUE(stream_->WritesDone());
  server_->AwaitQueued(3);
  EXPECT_EQ(server_->admission().slots().counts().all(), 4);
  server_->gate().Open();
  ExpectAllComputed(12);
}

TEST_F(EncodeStreamTest, TakesAPlaceAmongTheStreamsAndNoSlot) {
  TestServerOptions options;
  options.admission.streams = {1};
  Start(options);
  server_->AwaitStreams(1);
  EXPECT_EQ(server_->admission().slots().counts().all(), 0);
  RawCall second(server_->channel(), kEncodeStream);
  const grpc::Status refused = second.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "all stream slots are taken (1 of 1, --max-streams); retry later");
  EXPECT_EQ(second.Trailer("attendant-reason"), "streams");
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  stream_->WritesDone();
  EXPECT_EQ(ReadAll().size(), 3u);
  EXPECT_TRUE(stream_->Finish().ok());
  server_->AwaitStreams(0);
  EXPECT_EQ(server_->admission().memory().counts().all(), 0);
}

TEST_F(EncodeStreamTest, AnItemWithoutASlotWaitsForTheAnswersBefore) {
  TestServerOptions options;
  options.gate_closed = true;
  options.admission.slots = {2};
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  ASSERT_TRUE(stream_->Write(Item(1)));
  server_->AwaitInflight(2);
  EXPECT_GT(server_->admission().memory().counts().held_for(HeldFor::kRequest), 0);
  for (uint64_t id = 2; id < 6; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  stream_->WritesDone();
  server_->gate().Open();
  ExpectAllComputed(6);
  server_->AwaitInflight(0);
}

TEST_F(EncodeStreamTest, AnItemAloneNeedsNoSlot) {
  TestServerOptions options;
  options.admission.slots = {1};
  Start(options);
  Budget::Reservation taken;
  ASSERT_TRUE(server_->admission().TakeSlot("another", taken).ok());
  for (uint64_t id = 0; id < 6; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  stream_->WritesDone();
  ExpectAllComputed(6);
}

// Returns the bytes that a queued item holds.
int64_t BytesOf(const v1::EncodeStreamRequest& item) {
  TestServerOptions options;
  options.gate_closed = true;
  TestServer server(options);
  grpc::ClientContext context;
  const auto stream = server.stub().EncodeStream(&context);
  stream->Write(item);
  server.gate().AwaitBlocked();
  const int64_t bytes = server.admission().memory().counts().held_for(HeldFor::kRequest);
  server.gate().Open();
  return bytes;
}

TEST_F(EncodeStreamTest, AnItemWithoutMemoryWaitsForTheAnswersBefore) {
  TestServerOptions options;
  options.gate_closed = true;
  options.admission.memory = {RecentSize::kLeast + BytesOf(Item(0)) * 3 / 2};
  Start(options);
  for (uint64_t id = 0; id < 6; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  stream_->WritesDone();
  server_->gate().AwaitBlocked();
  server_->gate().Open();
  ExpectAllComputed(6);
}

TEST_F(EncodeStreamTest, AnItemAloneWithoutMemoryIsRefusedAndTheStreamGoesOn) {
  TestServerOptions options;
  options.admission.memory = {RecentSize::kLeast + BytesOf(Item(0)) * 3 / 2};
  Start(options);
  Budget::Reservation taken;
  ASSERT_TRUE(
      server_->admission().Charge({"another", BytesOf(Item(0)), HeldFor::kRequest}, taken).ok());
  ASSERT_TRUE(stream_->Write(Item(1)));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream_->Read(&answer));
  EXPECT_EQ(answer.error().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(answer.error().message(), HasSubstr("; this request with its response needs "));
  EXPECT_EQ(answer.error().reason(), "memory");
  EXPECT_GT(answer.error().retry_pushback_ms(), 0);
  taken.Release();
  ASSERT_TRUE(stream_->Write(Item(2)));
  ASSERT_TRUE(stream_->Read(&answer));
  EXPECT_FALSE(answer.has_error()) << answer.error().message();
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(EncodeStreamTest, WhatExceedsThePartOfTheCallerWaitsInTheStream) {
  TestServerOptions options;
  options.gate_closed = true;
  options.queue.max_seconds = absl::Nanoseconds(1);
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  for (uint64_t id = 1; id < 12; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  server_->AwaitQueued(1);
  // So does that of another stream of the same caller, of which there is one item in the queue.
  grpc::ClientContext context;
  const auto second = server_->stub().EncodeStream(&context);
  for (uint64_t id = 0; id < 12; ++id) ASSERT_TRUE(second->Write(Item(id)));
  server_->AwaitQueued(3);
  EXPECT_EQ(server_->admission().slots().counts().all(), 4);
  stream_->WritesDone();
  second->WritesDone();
  server_->gate().Open();
  ExpectAllComputed(12);
  v1::EncodeStreamResponse answer;
  while (second->Read(&answer)) EXPECT_FALSE(answer.has_error()) << answer.error().message();
  EXPECT_TRUE(second->Finish().ok());
}

TEST_F(EncodeStreamTest, AnItemWhoseDeadlineCannotBeMetIsRefusedWithTheReason) {
  TestServerOptions options;
  options.models = ModelOf("tiny", TestModels().at("tiny")->encoder->description());
  options.models.at("tiny")->cost->SetRates({.product_flops = 1});  // hours
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream_->Read(&answer));
  EXPECT_EQ(answer.error().code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(answer.error().reason(), "deadline_hopeless");
  EXPECT_EQ(answer.error().retry_pushback_ms(), 0);
  // Without a deadline of its own it is not.
  grpc::ClientContext context;
  const auto patient = server_->stub().EncodeStream(&context);
  ASSERT_TRUE(patient->Write(Item(0)));
  ASSERT_TRUE(patient->Read(&answer));
  EXPECT_FALSE(answer.has_error()) << answer.error().message();
}

TEST_F(EncodeStreamTest, CancellationDropsQueuedItems) {
  TestServerOptions options;
  options.gate_closed = true;
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  for (uint64_t id = 1; id < 4; ++id) ASSERT_TRUE(stream_->Write(Item(id)));
  server_->AwaitQueued(3);
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_->AwaitStreams(0);
  server_->gate().Open();
  v1::EncodeResponse response;
  EXPECT_TRUE(server_->Encode(Item(9).request(), &response).ok());
  // The first batch had already been taken; the others never are.
  EXPECT_EQ(server_->gate().passed(), 2);
  EXPECT_EQ(response.execution().batch_requests(), 1);
}

TEST_F(EncodeStreamTest, AMalformedItemEndsTheStreamAfterTheAnswers) {
  Start();
  RawCall call(server_->channel(), kEncodeStream);
  ASSERT_TRUE(call.Write(Item(3).SerializeAsString()));
  ASSERT_TRUE(call.Write("\xff\xff"));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(call.Read(&answer));
  EXPECT_EQ(answer.id(), 3u);
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(EncodeStreamTest, WhileDrainingAcceptedItemsAreAnsweredAndNewOnesRefused) {
  TestServerOptions options;
  options.gate_closed = true;
  Start(options);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  server_->admission().Close();
  ASSERT_TRUE(stream_->Write(Item(1)));
  v1::EncodeStreamResponse refused;
  ASSERT_TRUE(stream_->Read(&refused));
  EXPECT_EQ(refused.id(), 1u);
  EXPECT_EQ(refused.error().code(), grpc::StatusCode::UNAVAILABLE);
  server_->gate().Open();
  stream_->WritesDone();
  const auto answers = ReadAll();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers.at(0).has_response());
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(EncodeStreamTest, ADrainEndsIdleStreamsAtOnceAndOthersAfterTheirAnswers) {
  TestServerOptions options;
  options.gate_closed = true;
  Start(options);
  RawCall idle(server_->channel(), kEncodeStream);
  ASSERT_TRUE(stream_->Write(Item(0)));
  server_->gate().AwaitBlocked();
  server_->AwaitStreams(2);
  server_->admission().Close();
  server_->service().Drain();
  EXPECT_EQ(idle.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->AwaitStreams(1);
  server_->gate().Open();
  const auto answers = ReadAll();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers.at(0).has_response());
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is draining; retry on another server");
  server_->AwaitStreams(0);
}

}  // namespace encode_stream_test
}  // namespace attendant::server
