#include "server/rpc/reflection_service.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/server/support/test_server.h"

namespace attendant::server {
namespace {

using grpc::reflection::v1alpha::ServerReflection;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
using Response = grpc::reflection::v1alpha::ServerReflectionResponse;

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

class ReflectionServiceTest : public testing::Test {
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

TEST_F(ReflectionServiceTest, ListsTheServices) {
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

TEST_F(ReflectionServiceTest, GivesAFileWithAllThatItImports) {
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

TEST_F(ReflectionServiceTest, KnowsExtensions) {
  Request numbers;
  numbers.set_all_extension_numbers_of_type("attendant.v1.AttendRequest");
  const Response response = stream_.Ask(numbers);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(),
            "attendant.v1.AttendRequest");
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TEST_F(ReflectionServiceTest, SaysWhatItDoesNotKnow) {
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

TEST_F(ReflectionServiceTest, RefusesALargeRequest) {
  Request request;
  request.set_file_containing_symbol(std::string(5000, 'x'));
  ASSERT_TRUE(stream_.Write(request));
  const grpc::Status status = stream_.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "a reflection request has at most 4096 bytes, got 5003");
}

TEST_F(ReflectionServiceTest, HasFewPlacesThatAreFreeAgainWhenAStreamEnds) {
  Request request;
  request.set_list_services("");
  std::vector<std::unique_ptr<Stream>> streams;
  stream_.Ask(request);
  while (streams.size() + 1 < ReflectionService::kMaxStreams) {
    streams.push_back(std::make_unique<Stream>(server_.channel()));
    streams.back()->Ask(request);
  }
  Stream one_more(server_.channel());
  const grpc::Status status = one_more.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too many reflection streams are open");
  EXPECT_TRUE(streams[0]->FinishWriting().ok());
  // The caller may hear of the end before the server's OnDone.
  for (bool refused = true; refused;) {
    Stream again(server_.channel());
    refused = !again.FinishWriting().ok();
  }
}

TEST(ReflectionTimeTest, AStreamIsEndedWhenItsTimeIsUp) {
  ReflectionService service({}, absl::Milliseconds(1));
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Stream stream(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("a reflection stream may last 1ms"));
}

}  // namespace
}  // namespace attendant::server
