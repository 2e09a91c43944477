#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "grpc/health/v1/health.pb.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/small_message.h"
#include "server/rpc/calls.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kRequest[] = "the request";

HealthCheckResponse::ServingStatus StatusOf(std::optional<bool> serving) {
  if (!serving) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::ByteBuffer Serialize(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return SerializeResponse(response);
}

// The call of Health.Watch. Changes of states come on threads of their own.
class HealthWatch final : public Call, public HealthWatcher {
 public:
  explicit HealthWatch(CallArgs entry) : Call(std::move(entry)) {}

  void OnChange() override {
    React([this] {
      absl::MutexLock lock(&mutex_);
      Advance();
    });
  }

 private:
  absl::Status Begin() override {
    Receive();
    return absl::OkStatus();
  }

  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation) override {
    HealthCheckRequest request;
    RETURN_IF_ERROR(ParseSmallMessage(message, kRequest, request));
    name_ = method_context_.service.models.Resolve(request.service());
    Budget::Reservation watch;
    const Budget::Answer answer = context_.admission.health_watches().TryTake({peer_, 1}, watch);
    if (answer != Budget::Answer::kTaken) {
      return answer == Budget::Answer::kShare
                 ? Refused(Refusal::kPeerShare,
                           "the client already has its share of the health watches")
                 : Refused(Refusal::kStreams, "too many health watches are open");
    }
    method_context_.health.Watch({shared_from_this(), this});
    absl::MutexLock lock(&mutex_);
    std::swap(*place_, watch);  // the place of the call is given back without the mutex
    Advance();
    return absl::OkStatus();
  }

  absl::Status OnWritten(bool ok) override {
    if (!ok) return absl::CancelledError("the client has disconnected");
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    Advance();
    return absl::OkStatus();
  }

  // Sends the state if it is another one than was sent last.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || ended_) return;
    const HealthCheckResponse::ServingStatus status = StatusOf(method_context_.health.Find(name_));
    if (sent_ == status) return;
    response_ = Serialize(status);
    sent_ = status;
    writing_ = true;
    StartWrite(&response_);
  }

  std::string name_;                                 // constant once the message is read
  std::optional<int> sent_ ABSL_GUARDED_BY(mutex_);  // the state that was sent last
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<grpc::ByteBuffer> CheckHealth(const MethodContext& context,
                                             const grpc::ByteBuffer& message, std::string&) {
  HealthCheckRequest request;
  RETURN_IF_ERROR(ParseSmallMessage(message, kRequest, request));
  const std::optional<bool> serving =
      context.health.Find(context.service.models.Resolve(request.service()));
  if (!serving) return absl::NotFoundError("the server has no service or model with that name");
  return Serialize(StatusOf(serving));
}

std::shared_ptr<Call> NewHealthWatch(CallArgs entry) {
  return std::make_shared<HealthWatch>(std::move(entry));
}

}  // namespace attendant::server
