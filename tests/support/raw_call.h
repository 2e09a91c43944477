// Calls of methods by name with messages as bytes: for services that have no stub in Debian's
// packages (health, reflection), and for what a stub would not send.
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

// One call; any number of messages either way, or none. Every step waits until it is done. One
// thread. Cancelled when destroyed.
class RawCall {
 public:
  // Sends the headers. `method` is "/package.Service/Method". Fails after a minute.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method);
  ~RawCall();

  // False: the call has ended.
  bool Write(const std::string& message);
  bool WritesDone();
  // The next message; nothing: the call has ended.
  std::optional<std::string> Read();
  bool Read(google::protobuf::Message* message);
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }
  // After Finish.
  std::string Trailer(const std::string& key) const;

 private:
  bool Await();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

// The value of a trailer of a call that has ended, or "none".
std::string TrailerOf(const grpc::ClientContext& context, const std::string& key);

// grpc.health.v1.HealthCheckResponse.ServingStatus.
enum HealthStatus : uint64_t { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// A message with one text field (or bytes, or message).
std::string TextField(int number, const std::string& text);

// The length-delimited values of the message's field `number`.
std::vector<std::string> Texts(const std::string& message, int number);
// The value of its varint field `number`; 0 if absent.
uint64_t Number(const std::string& message, int number);

}  // namespace attendant::server
