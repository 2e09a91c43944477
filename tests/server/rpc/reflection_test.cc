// Tests of grpc.reflection.v1alpha.ServerReflection.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "tests/server/support/test_server.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace reflection_test {

using grpc::reflection::v1alpha::ServerReflection;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
using Response = grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

class Stream {
 public:
  explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
      : stream_(ServerReflection::NewStub(channel)->ServerReflectionInfo(&context_)) {}
  ~Stream() { context_.TryCancel(); }

  Response Ask(const Request& request) {
    Response response;
    EXPECT_TRUE(stream_->Write(request) && stream_->Read(&response));
    return response;
  }
  grpc::Status FinishWriting() {
    stream_->WritesDone();
    return Finish();
  }
  grpc::Status Finish() {
    Response response;
    EXPECT_FALSE(stream_->Read(&response));
    return stream_->Finish();
  }
  bool Write(const Request& request) { return stream_->Write(request); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream_;
};

class ReflectionTest : public testing::Test {
 protected:
  static std::set<std::string> FilesOf(const Response& response) {
    std::set<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      EXPECT_TRUE(names.insert(file.name()).second) << file.name() << " comes twice";
    }
    return names;
  }
  void ExpectNotFound(const Request& request) {
    EXPECT_EQ(stream_.Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND)
        << request.ShortDebugString();
  }

  TestServer server_;
  Stream stream_{server_.channel()};
};

TEST_F(ReflectionTest, ListsTheServices) {
  Request request;
  request.set_host("a host");
  request.set_list_services("");
  const Response response = stream_.Ask(request);
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, UnorderedElementsAre("attendant.v1.EncoderService", "grpc.health.v1.Health",
                                          "inference.GRPCInferenceService",
                                          "grpc.reflection.v1alpha.ServerReflection"));
  EXPECT_EQ(response.valid_host(), "a host");
  EXPECT_EQ(response.original_request().host(), "a host");
}

TEST_F(ReflectionTest, GivesAFileWithAllThatItImports) {
  Request by_name;
  by_name.set_file_by_filename("attendant/v1/encoder_service.proto");
  const std::set<std::string> files = FilesOf(stream_.Ask(by_name));
  EXPECT_THAT(files,
              IsSupersetOf({"attendant/v1/encoder_service.proto", "attendant/v1/tensor.proto"}));
  for (const char* symbol : {"attendant.v1.EncoderService", "attendant.v1.EncoderService.Attend",
                             "attendant.v1.AttendRequest", "attendant.v1.AttendRequest.model"}) {
    Request by_symbol;
    by_symbol.set_file_containing_symbol(symbol);
    EXPECT_EQ(FilesOf(stream_.Ask(by_symbol)), files) << symbol;
  }
}

TEST_F(ReflectionTest, KnowsExtensions) {
  Request numbers;
  numbers.set_all_extension_numbers_of_type("attendant.v1.AttendRequest");
  const Response response = stream_.Ask(numbers);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(),
            "attendant.v1.AttendRequest");
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TEST_F(ReflectionTest, SaysWhatItDoesNotKnow) {
  Request request;
  request.set_file_by_filename("nothing.proto");
  ExpectNotFound(request);
  request.set_file_containing_symbol("no.Symbol");
  ExpectNotFound(request);
  request.set_all_extension_numbers_of_type("no.Message");
  ExpectNotFound(request);
  request.mutable_file_containing_extension()->set_containing_type("no.Message");
  ExpectNotFound(request);
  request.mutable_file_containing_extension()->set_containing_type("attendant.v1.AttendRequest");
  request.mutable_file_containing_extension()->set_extension_number(7);
  ExpectNotFound(request);
  EXPECT_EQ(stream_.Ask({}).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(stream_.FinishWriting().ok());
}

TEST_F(ReflectionTest, RefusesWhatIsNoRequest) {
  Request request;
  request.set_file_containing_symbol(std::string(5000, 'x'));
  ASSERT_TRUE(stream_.Write(request));
  grpc::Status status = stream_.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the message: expected at most 4096 bytes; got 5003");

  RawCall malformed(server_.channel(), kMethod);
  malformed.Write("\x0a\x7f");
  status = malformed.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the message: not a valid ServerReflectionRequest");
  server_.ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"INVALID_ARGUMENT\","
                "method=\"ServerReflectionInfo\",model=\"\"} 2"));
}

TEST_F(ReflectionTest, HoldsAStreamAndForEachRequestASlot) {
  stream_.Ask({});
  server_.AwaitStreams(1);
  server_.AwaitInflight(0);
  EXPECT_TRUE(stream_.FinishWriting().ok());
  server_.AwaitStreams(0);
  server_.AwaitNothingReceiving();
  server_.ExpectMetrics(HasSubstr("method=\"ServerReflectionInfo\",model=\"\"} 1"));
}

TEST(FullServerTest, ReflectionIsRefusedWithTheReason) {
  TestServer without_slots({.admission = {.slots = {0}}});
  RawCall no_slot(without_slots.channel(), kMethod);
  no_slot.Write(TextField(7, ""));
  EXPECT_EQ(no_slot.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(no_slot.Trailer("attendant-reason"), "slots");

  TestServer without_streams({.admission = {.streams = {0}}});
  RawCall no_stream(without_streams.channel(), kMethod);
  EXPECT_EQ(no_stream.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(no_stream.Trailer("attendant-reason"), "streams");
}

TEST_F(ReflectionTest, AnAddressHasFewStreamsThatAreFreeAgainWhenOneEnds) {
  std::vector<std::unique_ptr<Stream>> streams;
  stream_.Ask({});
  while (streams.size() < 3) {
    streams.push_back(std::make_unique<Stream>(server_.channel()));
    streams.back()->Ask({});
  }
  RawCall one_more(server_.channel(), kMethod);
  const grpc::Status status = one_more.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too many reflection streams are open");
  EXPECT_EQ(one_more.Trailer("attendant-reason"), "peer_share");
  EXPECT_NE(one_more.Trailer("grpc-retry-pushback-ms"), "none");
  EXPECT_TRUE(streams[0]->FinishWriting().ok());
  // The caller may hear of the end before the server's OnDone.
  for (bool refused = true; refused;) {
    Stream again(server_.channel());
    refused = !again.FinishWriting().ok();
  }
}

TEST_F(ReflectionTest, DrainingEndsOpenStreamsAndRefusesOthers) {
  stream_.Ask({});
  server_.admission().Close();
  server_.service().Drain();
  EXPECT_EQ(stream_.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  RawCall late(server_.channel(), kMethod);
  EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(late.Trailer("attendant-reason"), "draining");
}

// What has come is charged, and a message has the time of any other.
TEST(HalfSentReflectionTest, IsChargedAndGivenUp) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Seconds(1);
  options.limits.min_receive_rate = int64_t{1} << 30;
  TestServer server(options);
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall(kMethod);
  connection.SendMessage(call, 500 << 10, std::string(300 << 10, 'x'));
  server.AwaitReceiving(300 << 10);
  server.AwaitStreams(1);
  EXPECT_THAT(connection.AwaitEnd(call), HasSubstr("the request's body did not arrive within 1s"));
  server.AwaitStreams(0);
  server.AwaitNothingReceiving();
}

TEST(HalfSentReflectionTest, SoIsASecondMessageThatDoesNotCome) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Milliseconds(50);
  TestServer server(options);
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall(kMethod);
  const std::string request = TextField(7, "");
  connection.SendMessage(call, static_cast<uint32_t>(request.size()), request);
  EXPECT_THAT(connection.AwaitEnd(call),
              HasSubstr("the request's body did not arrive within 50ms"));
}

TEST(HalfSentReflectionTest, WhatHasNoRoomIsRefused) {
  TestServerOptions options;
  options.admission.memory = {int64_t{400} << 10};
  TestServer server(options);
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall(kMethod);
  connection.SendMessage(call, 500 << 10, std::string(450 << 10, 'x'));
  EXPECT_THAT(connection.AwaitEnd(call),
              HasSubstr("the unfinished requests of this connection need"));
  server.AwaitStreams(0);
  server.AwaitNothingReceiving();
}

}  // namespace reflection_test
}  // namespace attendant::server
