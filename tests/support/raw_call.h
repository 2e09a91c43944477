// RawCall, which calls a gRPC method by name with messages as bytes: for services that have no stub
// in Debian's packages (health, reflection), and for messages that a stub would not send.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attendant::server {

// One call, with any number of messages in each direction. Every step blocks until it is done. Not
// thread-safe. The destructor cancels the call.
class RawCall {
 public:
  // Sends the headers. `method` is "/package.Service/Method". The deadline is one minute.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method);
  ~RawCall();

  // These return false if the call has ended.
  bool Write(const std::string& message);
  bool WritesDone();
  // Returns the next message; nothing if the call has ended.
  std::optional<std::string> Read();
  bool Read(google::protobuf::Message* message);
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }
  // To be called after Finish.
  std::string Trailer(const std::string& key) const;

 private:
  bool Await();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

// Returns the value of a trailer of a call that has ended, or "none".
std::string TrailerOf(const grpc::ClientContext& context, const std::string& key);

// The values of grpc.health.v1.HealthCheckResponse.ServingStatus.
enum HealthStatus : uint64_t { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// Returns a serialised message with one length-delimited field: text, bytes or a message.
std::string TextField(int number, const std::string& text);

// Returns the values of a length-delimited field.
std::vector<std::string> Texts(const std::string& message, int number);
// Returns the value of a varint field; 0 if it is absent.
uint64_t Number(const std::string& message, int number);

}  // namespace attendant::server
