// Calls of methods by name with messages as bytes, for services that have no stub in Debian's
// packages: health and reflection.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attendant::server {

// One call; any number of messages either way. One thread. Cancelled if it is destroyed unfinished.
class RawCall {
 public:
  // `method` is "/package.Service/Method". Fails after a minute.
  RawCall(const std::string& address, const std::string& method);
  ~RawCall();

  void Write(const std::string& message);
  void WritesDone();
  // The next message; nothing: the call has ended.
  std::optional<std::string> Read();
  grpc::Status Finish();

 private:
  bool Await();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

// A message with one text field (or bytes, or message).
std::string TextField(int number, const std::string& text);

// The length-delimited values of the message's field `number`.
std::vector<std::string> Texts(const std::string& message, int number);
// The value of its varint field `number`; 0 if absent.
uint64_t Number(const std::string& message, int number);

}  // namespace attendant::server
