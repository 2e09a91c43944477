// load_stub BYTES: a server that answers every Encode with the same message, with hidden states of
// so many bytes, and that costs as little as gRPC allows. It prints its port and ends with its
// input.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant {
namespace {

constexpr int64_t kWidth = 384;

grpc::ByteBuffer BufferOf(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer Model() {
  v1::GetModelResponse model;
  model.set_name("stub");
  model.mutable_layer()->set_hidden_size(kWidth);
  return BufferOf(model);
}

grpc::ByteBuffer Answer(size_t bytes) {
  v1::EncodeResponse answer;
  if (bytes > 0) answer.mutable_hidden_states()->set_data(std::string(bytes, '\0'));
  answer.mutable_execution()->set_compute_ns(1000);
  answer.mutable_execution()->set_batch_requests(1);
  return BufferOf(answer);
}

class Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(const grpc::ByteBuffer* answer, grpc::Status status)
      : answer_(answer), status_(std::move(status)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (ok && status_.ok()) {
      StartWriteAndFinish(answer_, grpc::WriteOptions(), status_);
    } else {
      Finish(status_);
    }
  }

  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer* answer_;
  const grpc::Status status_;
  grpc::ByteBuffer request_;
};

class Stub : public grpc::CallbackGenericService {
 public:
  explicit Stub(size_t bytes) : answer_(Answer(bytes)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& method = context->method();
    if (method == "/attendant.v1.EncoderService/Encode") return new Call(&answer_, {});
    if (method == "/attendant.v1.EncoderService/GetModel") return new Call(&model_, {});
    return new Call(nullptr, {grpc::StatusCode::UNIMPLEMENTED, "not by this stub"});
  }

 private:
  const grpc::ByteBuffer model_ = Model();
  const grpc::ByteBuffer answer_;
};

int Run(size_t bytes) {
  Stub stub(bytes);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&stub);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << port << std::endl;
  while (std::cin.get() != EOF) {
  }
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  return attendant::Run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0);
}
