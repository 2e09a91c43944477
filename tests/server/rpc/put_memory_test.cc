// Tests of registered memories over a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/support/rule_test.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace put_memory_test {

constexpr int64_t kE = 32;

v1::PutMemoryRequest Valid() {
  v1::PutMemoryRequest request;
  request.set_model("tiny");
  request.set_layer(1);
  *request.mutable_memory()->mutable_hidden_states() =
      FloatTensor({2, 5, kE}, SomeValues(10 * kE, 1));
  *request.mutable_memory()->mutable_attention_mask() =
      IntegerTensor({2, 5}, {1, 0, 1, 1, 0, 1, 1, 1, 1, 1});
  return request;
}

v1::AttendRequest Queries() {
  v1::AttendRequest request = AttendOf("tiny", FloatTensor({2, 3, kE}, SomeValues(6 * kE, 2)));
  request.set_layer(1);
  return request;
}

grpc::Status Put(TestServer& server, const v1::PutMemoryRequest& request,
                 v1::PutMemoryResponse* response) {
  grpc::ClientContext context;
  return server.stub().PutMemory(&context, request, response);
}

grpc::Status Drop(TestServer& server, const std::string& handle, v1::DropMemoryResponse* response) {
  grpc::ClientContext context;
  v1::DropMemoryRequest request;
  request.set_handle(handle);
  return server.stub().DropMemory(&context, request, response);
}

class PutMemoryTest : public ::testing::Test {
 protected:
  PutMemoryTest() {
    options_.memory_clock = &clock_;
    server_ = std::make_unique<TestServer>(options_);
  }

  v1::PutMemoryResponse Put(const v1::PutMemoryRequest& request) {
    v1::PutMemoryResponse response;
    const grpc::Status status = put_memory_test::Put(*server_, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::AttendResponse Attend(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_->Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status TryAttend(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    return server_->Attend(request, &response);
  }

  FakeClock clock_;
  TestServerOptions options_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(PutMemoryTest, GivesTheBitsOfAMemoryInTheRequest) {
  v1::PutMemoryRequest put = Valid();
  for (const bool has_values : {false, true}) {
    if (has_values) {
      *put.mutable_memory()->mutable_values() =
          FloatTensor({2, 5, kE}, SomeValues(10 * kE, 3), v1::FLOAT16);
    }
    const std::string handle = Put(put).handle();
    for (const v1::AttendStage stage : {v1::CONTEXT, v1::PROJECTED, v1::BLOCK}) {
      v1::AttendRequest request = Queries();
      request.set_stage(stage);
      request.set_return_attention_probabilities(true);
      *request.mutable_attention_bias() = FloatTensor({1, 1, 3, 5}, SomeValues(15, 4));
      *request.mutable_memory() = put.memory();
      const v1::AttendResponse given = Attend(request);
      request.clear_memory();
      request.set_memory_handle(handle);
      const v1::AttendResponse registered = Attend(request);
      EXPECT_EQ(registered.output().data(), given.output().data());
      EXPECT_EQ(registered.attention_probabilities().data(),
                given.attention_probabilities().data());
      EXPECT_EQ(registered.execution().tokens(), 6);
    }
  }
}

TEST_F(PutMemoryTest, OneMemoryServesAllSequences) {
  v1::PutMemoryRequest put = Valid();
  *put.mutable_memory()->mutable_hidden_states() = FloatTensor({4, kE}, SomeValues(4 * kE, 5));
  put.mutable_memory()->clear_attention_mask();
  put.mutable_memory()->add_lengths(4);
  v1::AttendRequest request = Queries();
  *request.mutable_memory() = put.memory();
  const std::string given = Attend(request).output().data();
  request.clear_memory();
  request.set_memory_handle(Put(put).handle());
  EXPECT_EQ(Attend(request).output().data(), given);
}

TEST_F(PutMemoryTest, SaysWhatItKeepsAndUntilWhen) {
  v1::PutMemoryRequest put = Valid();
  put.set_time_to_live_ms(1500);
  const v1::PutMemoryResponse response = Put(put);
  // 8 kept rows of 256 bytes of keys and values and 4 of position; 3 sequence bounds, 3 runs.
  EXPECT_EQ(response.bytes(), 512 + 8 * 260 + 3 * 4 + 3 * 16);
  EXPECT_EQ(response.expires_unix_ms(), 1500);
  EXPECT_EQ(response.execution().tokens(), 8);
  EXPECT_EQ(server_->cross_kv().counts().bytes, response.bytes());
  put.set_time_to_live_ms(0);
  EXPECT_EQ(Put(put).expires_unix_ms(), 600'000);
}

TEST_F(PutMemoryTest, IsNotFoundOnceExpiredOrDropped) {
  v1::PutMemoryRequest put = Valid();
  put.set_time_to_live_ms(1000);
  v1::AttendRequest request = Queries();
  request.set_memory_handle(Put(put).handle());
  EXPECT_TRUE(TryAttend(request).ok());
  clock_.Advance(absl::Seconds(1));
  const std::string gone =
      "memory_handle: not found (expired, dropped or never registered); call PutMemory again";
  EXPECT_EQ(TryAttend(request).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(TryAttend(request).error_message(), gone);
  const v1::PutMemoryResponse kept = Put(put);
  request.set_memory_handle(kept.handle());
  v1::DropMemoryResponse dropped;
  EXPECT_TRUE(Drop(*server_, kept.handle(), &dropped).ok());
  EXPECT_EQ(dropped.bytes(), kept.bytes());
  EXPECT_EQ(TryAttend(request).error_message(), gone);
  const grpc::Status again = Drop(*server_, kept.handle(), &dropped);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(again.error_message(), gone);
  EXPECT_EQ(server_->cross_kv().counts().bytes, 0);
}

TEST_F(PutMemoryTest, IsOfOneModelAndLayer) {
  v1::AttendRequest request = Queries();
  request.set_memory_handle(Put(Valid()).handle());
  request.set_layer(0);
  grpc::Status status = TryAttend(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "memory_handle: expected a memory of model tiny, layer 0; got model tiny, layer 1");
  request.set_layer(1);
  request.set_model("counting");
  status = TryAttend(request);
  EXPECT_EQ(status.error_message(),
            "memory_handle: expected a memory of model counting, layer 1; got model tiny, layer 1");
  request.set_model("tiny");
  *request.mutable_memory() = Valid().memory();
  status = TryAttend(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "memory_handle: cannot be combined with memory; send one of them");
  request.clear_memory();
  *request.mutable_hidden_states() = FloatTensor({3, 2, kE}, SomeValues(6 * kE, 2));
  EXPECT_EQ(TryAttend(request).error_message(), "memory: expected 1 or B = 3 sequences; got 2");
}

TEST_F(PutMemoryTest, RefusesWhenFullAndMakesRoomAgain) {
  options_.limits.max_registered_bytes = 3000;
  server_ = std::make_unique<TestServer>(options_);
  const std::string handle = Put(Valid()).handle();
  v1::PutMemoryResponse response;
  const grpc::Status status = put_memory_test::Put(*server_, Valid(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "the space for registered memories and sequence states is full (2652 of 3000 bytes, "
            "--max-registered-bytes); this memory needs 2652; retry later");
  v1::DropMemoryResponse dropped;
  EXPECT_TRUE(Drop(*server_, handle, &dropped).ok());
  EXPECT_TRUE(put_memory_test::Put(*server_, Valid(), &response).ok());
}

TEST_F(PutMemoryTest, KeepsNothingOfARequestThatFails) {
  options_.limits.nonfinite = NonfinitePolicy::kReject;
  server_ = std::make_unique<TestServer>(options_);
  v1::PutMemoryRequest put = Valid();
  std::vector<float> values = SomeValues(10 * kE, 1);
  values[2 * kE + 3] = std::nanf("");
  *put.mutable_memory()->mutable_hidden_states() = FloatTensor({2, 5, kE}, values);
  v1::PutMemoryResponse response;
  const grpc::Status status = put_memory_test::Put(*server_, put, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "memory.hidden_states[0, 2, 3]: expected a finite number; got nan");
  EXPECT_EQ(server_->cross_kv().counts().bytes, 0);
}

TEST_F(PutMemoryTest, IsCountedAsAMethod) {
  const std::string handle = Put(Valid()).handle();
  v1::DropMemoryResponse dropped;
  Drop(*server_, handle, &dropped);
  Drop(*server_, handle, &dropped);
  for (const char* series :
       {"attendant_requests_total{code=\"OK\",method=\"PutMemory\",model=\"tiny\"} 1",
        "attendant_requests_total{code=\"OK\",method=\"DropMemory\",model=\"\"} 1",
        "attendant_requests_total{code=\"NOT_FOUND\",method=\"DropMemory\",model=\"\"} 1"}) {
    server_->ExpectMetrics(::testing::HasSubstr(series));
  }
}

// A registration has no queries, so it must not count those of the batch before it again.
TEST_F(PutMemoryTest, CountsNoKeylessRows) {
  v1::AttendRequest request = Queries();
  *request.mutable_attention_bias() =
      FloatTensor({1, 1, 1, 3}, std::vector<float>(3, -std::numeric_limits<float>::infinity()));
  Attend(request);
  Put(Valid());
  server_->ExpectMetrics(::testing::HasSubstr("attendant_keyless_rows_total{model=\"tiny\"} 24\n"));
}

using Request = v1::PutMemoryRequest;
using PutRule = Rule<Request>;
using PutMemoryRuleTest = RuleTest<Request>;

TEST_P(PutMemoryRuleTest, Refuses) {
  v1::PutMemoryResponse response;
  ExpectRefusal(Put(server(), Spoiled(Valid()), &response));
}

const PutRule kRules[] = {
    {"NoSuchModel", [](Request& r) { r.set_model("x"); },
     "model: not found (no model is named \"x\"); the models are \"bare\", \"mixed\", \"tiny\", "
     "\"linear\", \"patches\", \"counting\"",
     grpc::StatusCode::NOT_FOUND},
    {"LayerBeyondTheLast", [](Request& r) { r.set_layer(2); }, "layer: expected 0..1; got 2"},
    {"LongRequestId", [](Request& r) { r.set_request_id(std::string(257, 'x')); },
     "request_id: expected at most 256 bytes; got 257"},
    {"NoMemory", [](Request& r) { r.clear_memory(); }, "memory: expected a memory; got none"},
    {"NoRows", [](Request& r) { r.mutable_memory()->clear_hidden_states(); },
     "memory.hidden_states: expected a tensor; got none"},
    {"NegativeAge", [](Request& r) { r.set_time_to_live_ms(-1); },
     "time_to_live_ms: expected 0..600000; got -1"},
    {"LongAge", [](Request& r) { r.set_time_to_live_ms(600'001); },
     "time_to_live_ms: expected 0..600000; got 600001"},
    {"RelativePositions",
     [](Request& r) {
       r.set_model("patches");
       r.set_layer(0);
     },
     "memory: not supported by this layer: its alibi positions relate tokens of one sequence"},
    {"ManyRows",
     [](Request& r) {
       r.mutable_memory()->clear_attention_mask();
       *r.mutable_memory()->mutable_hidden_states() =
           FloatTensor({1, 257, kE}, SomeValues(257 * kE, 1));
     },
     "memory.hidden_states.shape: expected at most 256 tokens (--max-request-tokens); got [1, "
     "257]"},
    {"ManyRowsWithValues",
     [](Request& r) {
       r.mutable_memory()->clear_attention_mask();
       *r.mutable_memory()->mutable_hidden_states() =
           FloatTensor({1, 129, kE}, SomeValues(129 * kE, 1));
       *r.mutable_memory()->mutable_values() = r.memory().hidden_states();
     },
     "memory: expected at most 256 rows (--max-request-tokens); got 258"},
};
INSTANTIATE_TEST_SUITE_P(Fields, PutMemoryRuleTest, ::testing::ValuesIn(kRules),
                         NameOfRule<Request>);

}  // namespace put_memory_test
}  // namespace attendant::server
