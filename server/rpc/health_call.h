// A call of grpc.health.v1.Health.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/budget.h"
#include "server/base/time_limit.h"
#include "server/models/health_states.h"
#include "server/request/service_context.h"
#include "server/rpc/call/small_receipt.h"

namespace attendant::server {

// Takes no slot, so that probes succeed on a server that is full, and none of its time counts as a
// request's.
//
// gRPC's reactions, the time limit, evictions and state changes run on different threads and lock
// `mutex_`. gRPC holds the object (through self_)
// until OnDone.
class HealthCall final : public grpc::ServerGenericBidiReactor,
                         public HealthWatcher,
                         public std::enable_shared_from_this<HealthCall> {
 public:
  // What the paths of its methods begin with.
  static constexpr char kPrefix[] = "/grpc.health.v1.Health/";

  // Returns null if there is no such method. `path` begins with "/"; all others outlive the call.
  static grpc::ServerGenericBidiReactor* Start(absl::string_view path, const std::string& peer,
                                               const ServiceContext& context, HealthStates& states,
                                               grpc::CallbackServerContext& call);

  void OnChange() override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Method { kCheck, kWatch };

  HealthCall(Method method, std::string peer, const ServiceContext& context, HealthStates& states,
             grpc::CallbackServerContext& call)
      : method_(method), peer_(std::move(peer)), context_(context), states_(states), call_(call) {}

  void Read();
  void LimitReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReceiveTimeout();
  // Each of these returns the error that the call ends with.
  absl::Status Receive();
  absl::Status Check();
  absl::Status Watch();
  // Sends the state if it is another one than was sent last.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LimitSending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) noexcept;

  const Method method_;
  const std::string peer_;
  const ServiceContext& context_;
  HealthStates& states_;
  grpc::CallbackServerContext& call_;
  grpc::ByteBuffer message_;  // the read owns it, and then Receive
  std::string name_;          // constant once the message is read

  absl::Mutex mutex_;
  std::shared_ptr<HealthCall> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SmallReceipt> receipt_ ABSL_GUARDED_BY(mutex_);  // while the message is read
  Budget::Hold watch_ ABSL_GUARDED_BY(mutex_);
  TimeLimit time_limit_ ABSL_GUARDED_BY(mutex_);       // for receiving, then for sending
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);  // the write owns it while it is under way
  std::optional<int> sent_ ABSL_GUARDED_BY(mutex_);    // the state that was sent last
  bool watching_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // `call_` is gone
};

}  // namespace attendant::server
