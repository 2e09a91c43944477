#include "client/bearer_token.h"

namespace attendant::client {
namespace {

using grpc::experimental::InterceptionHookPoints;

class Sender final : public grpc::experimental::Interceptor {
 public:
  explicit Sender(const std::string& authorization) : authorization_(authorization) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    if (call->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      call->GetSendInitialMetadata()->emplace("authorization", authorization_);
    }
    call->Proceed();
  }

 private:
  const std::string authorization_;
};

class SenderFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit SenderFactory(const std::string& token) : authorization_("Bearer " + token) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new Sender(authorization_);  // gRPC deletes it
  }

 private:
  const std::string authorization_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendToken(
    const std::string& token) {
  return std::make_unique<SenderFactory>(token);
}

}  // namespace attendant::client
