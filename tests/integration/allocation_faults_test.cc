// Tests of the real server when its memory is short: allocations of its code fail again and again
// while it is called (failing_allocations.cc).
#include "tests/integration/allocation_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "inference/inference_service.grpc.pb.h"
#include "tests/integration/server_process.h"
#include "tests/integration/shared_with_server.h"
#include "tests/support/raw_call.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace allocation_faults_test {

using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

// What each call has come to: its answer, or the name of its error.
using Outcomes = std::map<std::string, std::string>;

std::string NameOf(const grpc::Status& status) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
}

// A tensor [2, length, 32] for the synthetic model.
v1::Tensor Rows(int64_t length) {
  std::vector<float> values;
  for (int64_t i = 0; i < 2 * length * 32; ++i) values.push_back(static_cast<float>(i % 17) / 8);
  v1::Tensor tensor;
  tensor.set_dtype(v1::FLOAT32);
  for (const int64_t size : {int64_t{2}, length, int64_t{32}}) tensor.add_shape(size);
  tensor.set_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

v1::EncodeRequest Tokens(int64_t sequences) {
  v1::EncodeRequest request;
  request.set_model("t");
  v1::Tensor& ids = *request.mutable_token_ids();
  ids.set_dtype(v1::INT8);
  for (const int64_t size : {sequences, int64_t{8}}) ids.add_shape(size);
  ids.set_data(std::string(static_cast<size_t>(sequences * 8), 7));
  request.add_intermediate_layers(0);
  request.add_attention_layers(1);
  request.set_return_pooled(true);
  request.set_return_token_vectors(true);
  return request;
}

// A caller with a connection of its own, which waits for the end of each call.
class Caller {
 public:
  explicit Caller(const ReadyServer& server) : server_(server), channel_(server.NewChannel()) {
    EXPECT_TRUE(channel_->WaitForConnected(Deadline()));
  }

  // Calls everything once.
  Outcomes CallAll() {
    outcomes_.clear();
    CallEncoder();
    CallMemory();
    CallStream();
    CallInference();
    CallHealth("Check", channel_);
    CallHealth("Check on a new connection", server_.NewChannel());
    CallReflection();
    CallHttp("GET /v2/models/worked-example", "");
    CallHttp("POST /v2/models/worked-example/infer",
             R"({"inputs":[{"name":"hidden_states","datatype":"FP32","shape":[1,2,4],)"
             R"("data":[1,0,1,0,0,2,0,2]}],"outputs":[{"name":"context_layer"}]})");
    CallHttp("POST /v2/repository/index", "{}");
    CallHttp("GET /metrics", "");
    return outcomes_;
  }

 private:
  static std::chrono::system_clock::time_point Deadline() {
    return std::chrono::system_clock::now() + std::chrono::seconds(30);
  }

  // `method` is one of a stub.
  template <typename Stub, typename Request, typename Response>
  void Call(const std::string& name, Stub& stub,
            grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if constexpr (requires { response.clear_execution(); }) response.clear_execution();
    outcomes_[name] = status.ok() ? response.SerializeAsString() : NameOf(status);
  }

  void CallEncoder() {
    using Stub = v1::EncoderService::Stub;
    Stub stub(channel_);
    v1::AttendRequest attend;
    attend.set_model("t");
    attend.set_return_attention_probabilities(true);
    *attend.mutable_hidden_states() = Rows(5);
    v1::AttendResponse attended;
    Call("Attend", stub, &Stub::Attend, attend, attended);
    v1::EncodeResponse encoded;
    Call("Encode", stub, &Stub::Encode, Tokens(64), encoded);
    v1::ListModelsResponse models;
    Call("ListModels", stub, &Stub::ListModels, v1::ListModelsRequest(), models);
    v1::GetModelRequest about;
    about.set_model("t");
    v1::GetModelResponse model;
    Call("GetModel", stub, &Stub::GetModel, about, model);
    if (model.has_layer()) outcomes_["GetModel"] = model.layer().SerializeAsString();
    v1::GetTokenizerRequest tokenizer;
    tokenizer.set_model("t");
    v1::GetTokenizerResponse none;
    Call("GetTokenizer", stub, &Stub::GetTokenizer, tokenizer, none);
  }

  void CallMemory() {
    using Stub = v1::EncoderService::Stub;
    Stub stub(channel_);
    v1::PutMemoryRequest put;
    put.set_model("t");
    *put.mutable_memory()->mutable_hidden_states() = Rows(6);
    v1::PutMemoryResponse registered;
    Call("PutMemory", stub, &Stub::PutMemory, put, registered);
    if (registered.handle().empty()) return;
    outcomes_["PutMemory"] = absl::StrCat(registered.bytes());
    v1::AttendRequest attend;
    attend.set_model("t");
    attend.set_memory_handle(registered.handle());
    *attend.mutable_hidden_states() = Rows(3);
    v1::AttendResponse attended;
    Call("Attend to a memory", stub, &Stub::Attend, attend, attended);
    v1::DropMemoryRequest drop;
    drop.set_handle(registered.handle());
    v1::DropMemoryResponse dropped;
    Call("DropMemory", stub, &Stub::DropMemory, drop, dropped);
  }

  void CallStream() {
    constexpr int kItems = 3;
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    const auto stream = v1::EncoderService::Stub(channel_).EncodeStream(&context);
    v1::EncodeStreamRequest item;
    for (int i = 1; i <= kItems; ++i) {
      item.set_id(static_cast<uint64_t>(i));
      *item.mutable_request() = Tokens(i);
      stream->Write(item);
    }
    stream->WritesDone();
    std::map<uint64_t, std::string> answers;
    for (v1::EncodeStreamResponse answer; stream->Read(&answer);) {
      answer.mutable_response()->clear_execution();
      answers[answer.id()] =
          answer.has_error() ? NameOf({static_cast<grpc::StatusCode>(answer.error().code()), ""})
                             : answer.SerializeAsString();
    }
    const std::string end = NameOf(stream->Finish());
    outcomes_["EncodeStream"] = end;
    for (uint64_t i = 1; i <= kItems; ++i) {
      outcomes_[absl::StrCat("item ", i)] = answers.contains(i) ? answers[i] : end;
    }
  }

  void CallInference() {
    using Stub = inference::GRPCInferenceService::Stub;
    Stub stub(channel_);
    inference::ModelInferRequest infer;
    infer.set_model_name("t");
    auto& ids = *infer.add_inputs();
    ids.set_name("input_ids");
    ids.set_datatype("INT64");
    for (const int64_t size : {1, 2}) ids.add_shape(size);
    for (const int64_t id : {11, 48}) ids.mutable_contents()->add_int64_contents(id);
    inference::ModelInferResponse inferred;
    Call("ModelInfer", stub, &Stub::ModelInfer, infer, inferred);
    inference::ModelMetadataRequest about;
    about.set_name("t");
    inference::ModelMetadataResponse metadata;
    Call("ModelMetadata", stub, &Stub::ModelMetadata, about, metadata);
  }

  void CallHealth(const std::string& name, const std::shared_ptr<grpc::Channel>& channel) {
    RawCall call(channel, "/grpc.health.v1.Health/Check");
    call.Write(TextField(1, "t"));
    call.WritesDone();
    const std::optional<std::string> answer = call.Read();
    const grpc::Status status = call.Finish();
    outcomes_[name] = status.ok() ? answer.value_or("no answer") : NameOf(status);
  }

  void CallReflection() {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    const auto stream = ServerReflection::NewStub(channel_)->ServerReflectionInfo(&context);
    ServerReflectionRequest request;
    request.set_file_containing_symbol("attendant.v1.EncoderService");
    stream->Write(request);
    ServerReflectionResponse answer;
    stream->Read(&answer);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    outcomes_["Reflection"] = status.ok() ? answer.SerializeAsString() : NameOf(status);
  }

  // Without an answer, or with the beginning of one, the server has closed the connection.
  void CallHttp(const std::string& target, const std::string& body) {
    const std::string request = absl::StrCat(
        target, " HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    const std::string answer = Exchange(server_.http_port(), request);
    const size_t head = answer.find("\r\n\r\n");
    const size_t length = answer.find("Content-Length: ");
    std::string& outcome = outcomes_[target];
    if (head == answer.npos || length == answer.npos) {
      outcome = "UNAVAILABLE";
      return;
    }
    const std::string code = answer.substr(answer.find(' ') + 1, 3);
    const std::string content = answer.substr(head + 4);
    if (content.size() < static_cast<size_t>(std::atol(answer.c_str() + length + 16))) {
      outcome = "UNAVAILABLE";
    } else if (code == "200") {
      outcome = absl::StrContains(target, "metrics") ? "metrics" : content;
    } else {
      outcome = code == "429" ? "RESOURCE_EXHAUSTED" : code == "500" ? "INTERNAL" : code;
    }
  }

  const ReadyServer& server_;
  const std::shared_ptr<grpc::Channel> channel_;
  Outcomes outcomes_;
};

class AllocationFaultsTest : public testing::Test {
 protected:
  AllocationFaultsTest() {
    for (int i = 0; i < 4; ++i) callers_.push_back(std::make_unique<Caller>(server_));
    expected_ = callers_[0]->CallAll();
  }

  // From now on, one in `interval` allocations of at least `least_bytes` fails on each thread.
  void Arm(int64_t interval, int64_t least_bytes) {
    faults_->failed = 0;
    faults_->least_bytes = least_bytes;
    faults_->interval = interval;
  }
  void Disarm() { faults_->interval = 0; }

  // Makes all callers call everything, at once. Expects that each call is answered as it is without
  // faults, or fails with one of these errors. Returns how many have failed.
  int CallRepeatedly(int rounds, const std::vector<std::string>& errors) {
    std::vector<std::future<int>> failed;
    for (const auto& caller : callers_) {
      failed.push_back(std::async(std::launch::async, [&] {
        int count = 0;
        for (int i = 0; i < rounds; ++i) count += Check(caller->CallAll(), errors);
        return count;
      }));
    }
    int sum = 0;
    for (std::future<int>& each : failed) sum += each.get();
    return sum;
  }

  int Check(const Outcomes& outcomes, const std::vector<std::string>& errors) const {
    int failed = 0;
    for (const auto& [name, outcome] : outcomes) {
      if (outcome == expected_.at(name)) continue;
      ++failed;
      EXPECT_THAT(errors, testing::Contains(outcome)) << name;
    }
    return failed;
  }

  SharedWithServer<AllocationFaults> faults_;
  ReadyServer server_{{"--model=t=synthetic:tiny", "--model=worked-example=worked-example",
                       "--instances=2", "--threads-per-instance=2"},
                      faults_.Launcher(ATTENDANT_FAILING_ALLOCATIONS)};
  std::vector<std::unique_ptr<Caller>> callers_;
  Outcomes expected_;
};

struct Faults {
  int64_t interval;
  int64_t least_bytes;
};

TEST_F(AllocationFaultsTest, EveryCallEndsAndNothingIsHeldAfterwards) {
  for (const Faults& faults :
       {Faults{333, 0}, {50, 0}, {7, 0}, {3, 0}, {1, 0}, {3, 256}, {2, 1024}, {1, 4096}}) {
    SCOPED_TRACE(absl::StrCat("each ", faults.interval, ". allocation of ", faults.least_bytes,
                              " bytes or more"));
    Arm(faults.interval, faults.least_bytes);
    EXPECT_GT(CallRepeatedly(4, {"RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE"}), 0);
    Disarm();
    EXPECT_GT(faults_->failed, 0);
    for (const char* gauge :
         {"attendant_inflight_requests", "attendant_open_streams", "attendant_queue_requests",
          "attendant_receiving_bytes", "attendant_request_bytes", "attendant_answer_bytes"}) {
      AwaitMetric(server_, gauge, 0);
    }
    EXPECT_EQ(CallRepeatedly(1, {}), 0);
    if (HasFailure()) break;
  }
  server_.process().Signal(SIGTERM);
  EXPECT_EQ(server_.process().AwaitEnd().code, 0);
}

class DrainWithFaultsTest : public AllocationFaultsTest,
                            public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Intervals, DrainWithFaultsTest, testing::Values(1, 2, 7));

TEST_P(DrainWithFaultsTest, EndsByItself) {
  const auto channel = server_.NewChannel();
  RawCall stream(channel, "/attendant.v1.EncoderService/EncodeStream");
  RawCall watch(channel, "/grpc.health.v1.Health/Watch");
  watch.Write(TextField(1, "t"));
  EXPECT_TRUE(watch.Read().has_value());
  AwaitMetric(server_, "attendant_open_streams", 1);
  Arm(GetParam(), 0);
  auto calls = std::async(std::launch::async, [this] {
    return CallRepeatedly(2, {"RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE"});
  });
  // If the server ends too early, so do the calls.
  while (faults_->failed < 10 &&
         calls.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
  EXPECT_GE(faults_->failed, 10);
  server_.process().Signal(SIGTERM);
  const ServerProcess::End end = server_.process().AwaitEnd();
  EXPECT_EQ(end.code, 0) << testing::PrintToString(end.lines);
  for (const std::string& line : end.lines) {
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("timeout"))) << "something was held";
  }
  EXPECT_GT(calls.get(), 0);
}

}  // namespace allocation_faults_test
}  // namespace attendant::server
