// Fails every allocation of one call, one at a time (failing_allocations.cc).
#include "tests/integration/allocation_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/integration/server_process.h"
#include "tests/integration/shared_with_server.h"

namespace attendant::server {
namespace allocation_faults_test {

constexpr int64_t kNever = int64_t{1} << 40;

v1::EncodeRequest Request() {
  v1::EncodeRequest request;
  request.set_model("t");
  v1::Tensor& ids = *request.mutable_token_ids();
  ids.set_dtype(v1::INT8);
  for (const int64_t size : {2, 8}) ids.add_shape(size);
  ids.set_data(std::string(16, 7));
  request.add_intermediate_layers(0);
  request.add_attention_layers(1);
  request.set_return_pooled(true);
  return request;
}

// Of its two vectors, the cache has room for one: each call finds that which the call before has
// computed.
v1::EncodeRequest PartlyKnown() {
  v1::EncodeRequest request;
  request.set_model("t");
  v1::Tensor& ids = *request.mutable_token_ids();
  ids.set_dtype(v1::INT8);
  for (const int64_t size : {2, 1}) ids.add_shape(size);
  ids.set_data("\x07\x08");
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  return request;
}

// What a call has come to: its answer, or its error.
struct Outcome {
  int code = grpc::StatusCode::OK;
  std::string answer;
};

class AllocationFaultsTest : public testing::Test {
 protected:
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    context.set_wait_for_ready(true);
  }

  Outcome Encode(const v1::EncodeRequest& request = Request()) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::EncodeResponse response;
    const grpc::Status status = stub_->Encode(&context, request, &response);
    response.clear_execution();
    return {status.error_code(), response.SerializeAsString()};
  }

  // An item's error is the outcome if the stream does not end with one.
  Outcome EncodeItem() {
    grpc::ClientContext context;
    SetDeadline(context);
    const auto stream = stub_->EncodeStream(&context);
    v1::EncodeStreamRequest item;
    *item.mutable_request() = Request();
    stream->Write(item);
    stream->WritesDone();
    v1::EncodeStreamResponse response;
    while (stream->Read(&response)) {
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return {status.error_code(), ""};
    if (response.has_error()) return {static_cast<int>(response.error().code()), ""};
    response.mutable_response()->clear_execution();
    return {grpc::StatusCode::OK, response.SerializeAsString()};
  }

  // Calls repeatedly, each time with another allocation that fails, until none is left.
  void FailEach(const std::function<Outcome()>& call) {
    const Outcome expected = call();
    ASSERT_EQ(expected.code, grpc::StatusCode::OK);
    faults_->until_failure = kNever;
    call();
    const int64_t allocations = kNever - faults_->until_failure;
    EXPECT_GT(allocations, 50);
    int64_t failed = 0;
    for (int64_t nth = 1; nth <= allocations && !HasFailure(); ++nth) {
      SCOPED_TRACE(absl::StrCat("allocation ", nth, " of ", allocations));
      faults_->until_failure = nth;
      const Outcome outcome = call();
      faults_->until_failure = 0;
      if (outcome.code == grpc::StatusCode::OK) {
        EXPECT_EQ(outcome.answer, expected.answer);
      } else {
        // A connection that cannot be metered is cut.
        EXPECT_THAT(outcome.code, testing::AnyOf(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                                 grpc::StatusCode::UNAVAILABLE));
        ++failed;
      }
      for (const char* gauge :
           {"attendant_inflight_requests", "attendant_open_streams", "attendant_queue_requests",
            "attendant_receiving_bytes", "attendant_request_bytes", "attendant_answer_bytes"}) {
        AwaitMetric(server_, gauge, 0);
      }
    }
    EXPECT_GT(failed, 50);
    EXPECT_EQ(call().answer, expected.answer);
  }

  SharedWithServer<AllocationFaults> faults_;
  ReadyServer server_{{"--model=t=synthetic:tiny", "--instances=1", "--threads-per-instance=1",
                       "--cache-bytes=384"},
                      faults_.Launcher(ATTENDANT_FAILING_ALLOCATIONS)};
  const std::unique_ptr<v1::EncoderService::Stub> stub_ = server_.NewStub();
};

TEST_F(AllocationFaultsTest, ACallEndsAndNothingIsHeldAfterwards) {
  FailEach([this] { return Encode(); });
  FailEach([this] { return EncodeItem(); });
  FailEach([this] { return Encode(PartlyKnown()); });
  server_.process().Signal(SIGTERM);
  EXPECT_EQ(server_.process().AwaitEnd().code, 0);
}

}  // namespace allocation_faults_test
}  // namespace attendant::server
