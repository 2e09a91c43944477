#include <utility>

#include "server/rpc/calls.h"

namespace attendant::server {
namespace {

class InlineCall final : public Call {
 public:
  InlineCall(CallArgs entry, InlineMethod method) : Call(std::move(entry)), method_(method) {}

 private:
  absl::Status Begin() override {
    Receive();
    return absl::OkStatus();
  }

  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation) override {
    std::string model;
    absl::StatusOr<grpc::ByteBuffer> response = method_(method_context_, message, model);
    {
      absl::MutexLock lock(&mutex_);
      if (account_) account_->SetModel(model);
    }
    if (!response.ok()) return response.status();
    End({absl::OkStatus(), *std::move(response)});
    return absl::OkStatus();
  }

  const InlineMethod method_;
};

}  // namespace

std::shared_ptr<Call> NewInlineCall(CallArgs entry, InlineMethod method) {
  return std::make_shared<InlineCall>(std::move(entry), method);
}

}  // namespace attendant::server
