// Tests of a running server's answers, on both ports.
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"

namespace attendant::server {
namespace serving_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kCheck = "/grpc.health.v1.Health/Check";
constexpr const char* kWatch = "/grpc.health.v1.Health/Watch";
constexpr const char* kReflection =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

class ServingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new ReadyServer({"--model=worked-example=worked-example", "--model=t=synthetic:tiny",
                               "--model=bf16x3=synthetic:tiny,dtype=bf16x3,emulate=true",
                               "--model=bf16=synthetic:tiny,dtype=bf16,emulate=true",
                               "--model=int8=synthetic:tiny,dtype=int8,emulate=true"});
  }
  static void TearDownTestSuite() { delete server_; }

  static ReadyServer* server_;
};
ReadyServer* ServingTest::server_ = nullptr;

v1::AttendRequest WorkedExample() {
  return AttendOf("worked-example", FloatTensor({1, 3, 4}, {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1}));
}

TEST_F(ServingTest, AnswersTheWorkedExample) {
  grpc::ClientContext context;
  v1::AttendResponse response;
  const grpc::Status status = server_->NewStub()->Attend(&context, WorkedExample(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.output().shape(), ElementsAre(1, 3, 3));
  ASSERT_EQ(response.output().data().size(), 9 * sizeof(float));
  float row[3];
  std::memcpy(row, response.output().data().data(), sizeof row);
  EXPECT_NEAR(row[0], 1.936621f, 2e-6);
  EXPECT_NEAR(row[1], 6.683105f, 2e-6);
  EXPECT_NEAR(row[2], 1.595068f, 2e-6);
}

// Encodes the same rows each time with all layers of a small model.
v1::EncodeResponse EncodeRows(v1::EncoderService::Stub& stub, const std::string& model) {
  constexpr int kRows = 7, kWidth = 32;
  std::vector<float> rows;
  for (int i = 0; i < kRows * kWidth; ++i) {
    rows.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
  }
  v1::EncodeRequest request;
  request.set_model(model);
  *request.mutable_hidden_states() = FloatTensor({1, kRows, kWidth}, rows);
  grpc::ClientContext context;
  v1::EncodeResponse response;
  const grpc::Status status = stub.Encode(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

float LargestDifference(const std::string& a, const std::string& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i + sizeof(float) <= a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    largest = std::max(largest, std::abs(x - y));
  }
  return largest;
}

TEST_F(ServingTest, ComputesEachModelInItsType) {
  const auto stub = server_->NewStub();
  const v1::EncodeResponse f32 = EncodeRows(*stub, "t");
  EXPECT_EQ(f32.execution().compute_dtype(), v1::FLOAT32);
  EXPECT_EQ(f32.execution().compute_type(), "f32");
  for (const auto& [model, dtype, tolerance] :
       {std::tuple("bf16x3", v1::BFLOAT16, 1e-4f), std::tuple("bf16", v1::BFLOAT16, 0.1f),
        std::tuple("int8", v1::INT8, 0.2f)}) {
    const v1::EncodeResponse answer = EncodeRows(*stub, model);
    EXPECT_EQ(answer.execution().compute_dtype(), dtype);
    EXPECT_EQ(answer.execution().compute_type(), model);
    const float difference =
        LargestDifference(answer.hidden_states().data(), f32.hidden_states().data());
    EXPECT_GT(difference, 0.0f);
    EXPECT_LT(difference, tolerance);
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(model);
    v1::GetModelResponse description;
    ASSERT_TRUE(stub->GetModel(&context, request, &description).ok());
    EXPECT_EQ(description.compute_dtype(), dtype);
    EXPECT_EQ(description.compute_type(), model);
  }
}

TEST_F(ServingTest, ListsItsModels) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(server_->NewStub()->ListModels(&context, {}, &response).ok());
  EXPECT_THAT(response.names(), ElementsAre("bf16", "bf16x3", "int8", "t", "worked-example"));
}

TEST_F(ServingTest, RefusesUnknownMethods) {
  RawCall call(server_->NewChannel(), "/attendant.v1.EncoderService/Decode");
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServingTest, HealthOfServerServiceAndModels) {
  for (const char* name : {"", "attendant.v1.EncoderService", "inference.GRPCInferenceService",
                           "worked-example", "t"}) {
    RawCall call(server_->NewChannel(), kCheck);
    call.Write(TextField(1, name));
    call.WritesDone();
    const std::optional<std::string> answer = call.Read();
    ASSERT_TRUE(answer.has_value()) << name;
    EXPECT_EQ(Number(*answer, 1), kServing) << name;
    EXPECT_TRUE(call.Finish().ok());
  }
}

TEST_F(ServingTest, HealthOfAnUnknownName) {
  RawCall check(server_->NewChannel(), kCheck);
  check.Write(TextField(1, "nobody"));
  check.WritesDone();
  EXPECT_FALSE(check.Read().has_value());
  EXPECT_EQ(check.Finish().error_code(), grpc::StatusCode::NOT_FOUND);

  RawCall watch(server_->NewChannel(), kWatch);
  watch.Write(TextField(1, "nobody"));
  watch.WritesDone();
  const std::optional<std::string> state = watch.Read();
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(Number(*state, 1), kServiceUnknown);
}

TEST_F(ServingTest, ReflectionDescribesEveryMethod) {
  RawCall call(server_->NewChannel(), kReflection);
  call.Write(TextField(7, ""));  // list_services
  std::optional<std::string> answer = call.Read();
  ASSERT_TRUE(answer.has_value());
  std::vector<std::string> services;
  for (const std::string& list : Texts(*answer, 6)) {
    for (const std::string& service : Texts(list, 1)) {
      services.push_back(Texts(service, 1).at(0));
    }
  }
  EXPECT_THAT(services, Contains("attendant.v1.EncoderService"));
  EXPECT_THAT(services, Contains("grpc.health.v1.Health"));

  call.Write(TextField(4, "attendant.v1.EncoderService"));  // file_containing_symbol
  answer = call.Read();
  ASSERT_TRUE(answer.has_value());
  std::vector<std::string> methods;
  for (const std::string& response : Texts(*answer, 4)) {
    for (const std::string& bytes : Texts(response, 1)) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(bytes));
      for (const auto& service : file.service()) {
        for (const auto& method : service.method()) methods.push_back(method.name());
      }
    }
  }
  EXPECT_THAT(methods, ElementsAre("Attend", "PutMemory", "DropMemory", "Encode", "EncodeStream",
                                   "ListModels", "GetModel", "Tokenize", "GetTokenizer"));
}

TEST_F(ServingTest, SidePort) {
  EXPECT_THAT(server_->Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server_->Get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server_->Get("/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST(LogOfTheServerTest, HasOneFormWhateverCallersSend) {
  ReadyServer server({"--log-level=debug"});
  for (const char* method : {"Attend", "Encode", "GetModel"}) {
    RawCall call(server.NewChannel(), absl::StrCat("/attendant.v1.EncoderService/", method));
    call.Write(TextField(1, "not UTF-8: \xff"));
    call.WritesDone();
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("a string is not UTF-8"));
  }
  server.process().Signal(SIGTERM);
  const ServerProcess::End end = server.process().AwaitEnd();
  EXPECT_THAT(end.lines, Contains(HasSubstr("debug protobuf: String field "
                                            "'attendant.v1.AttendRequest.model'")));
  EXPECT_THAT(end.lines, Each(MatchesRegex("[0-9-]+T[0-9:.]+Z (debug|info) .*")));
}

TEST(TracesOfTheServerTest, ASlowRequestIsLoggedWithItsTrace) {
  ReadyServer server({"--slow-request=1us"});
  constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  grpc::ClientContext context;
  context.AddMetadata("traceparent", kTrace);
  v1::AttendResponse response;
  EXPECT_TRUE(server.NewStub()->Attend(&context, WorkedExample(), &response).ok());
  const auto [begin, end] = context.GetServerTrailingMetadata().equal_range("traceparent");
  ASSERT_NE(begin, end);
  EXPECT_EQ(std::string(begin->second.data(), begin->second.size()), kTrace);
  EXPECT_THAT(server.process().AwaitLine("request ended: "),
              AllOf(HasSubstr(" warning "), HasSubstr(std::string(" trace=") + kTrace + " "),
                    HasSubstr(" method=Attend "), HasSubstr(" code=OK ")));
}

TEST(MetricsOfTheServerTest, AgreeWithTheCallersCount) {
  ReadyServer server;
  const auto stub = server.NewStub();
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    v1::AttendResponse response;
    EXPECT_TRUE(stub->Attend(&context, WorkedExample(), &response).ok());
  }
  v1::AttendRequest bad = WorkedExample();
  bad.set_layer(7);
  grpc::ClientContext context;
  v1::AttendResponse response;
  EXPECT_EQ(stub->Attend(&context, bad, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  // Counted last of what is counted of the calls.
  server.ExpectMetrics(AllOf(HasSubstr("code=\"INVALID_ARGUMENT\",method=\"Attend\""),
                             HasSubstr("attendant_batch_tokens_sum{model=\"worked-example\"} 9\n"),
                             HasSubstr("attendant_tokens_total{model=\"worked-example\"} 9\n")));
  const std::string metrics = server.Get("/metrics");
  EXPECT_THAT(metrics, HasSubstr("attendant_requests_total{code=\"OK\",method=\"Attend\","
                                 "model=\"worked-example\"} 3\n"));
  EXPECT_THAT(metrics, HasSubstr("attendant_request_seconds_count{code=\"OK\",method=\"Attend\","
                                 "model=\"worked-example\"} 3\n"));
  for (const char* cost :
       {"attendant_model_info{compute_type=\"f32\",", "attendant_cost_correction{",
        "attendant_cost_seconds_per_layer{", "attendant_model_bytes{model=\"worked-example\",",
        "attendant_cost_flops_per_second{model=\"worked-example\",part=\"products\"} ",
        "attendant_cost_flops_per_second{model=\"worked-example\",part=\"attention\"} "}) {
    EXPECT_THAT(metrics, HasSubstr(cost));
  }
  EXPECT_THAT(metrics, HasSubstr("attendant_queue_requests 0\n"));
  EXPECT_THAT(metrics, HasSubstr("# TYPE attendant_ready gauge\nattendant_ready 1\n"));
  EXPECT_THAT(metrics, HasSubstr("# TYPE attendant_connections gauge\nattendant_connections 1\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("attendant_certificate_expiry_timestamp_seconds")));
  EXPECT_THAT(metrics, HasSubstr("attendant_build_info{"));
}

}  // namespace serving_test
}  // namespace attendant::server
