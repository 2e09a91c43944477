// One call of Attend, Encode or PutMemory.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/admission.h"
#include "server/execution/request_job.h"
#include "server/request/service_context.h"
#include "server/rpc/request_end.h"
#include "server/rpc/request_intake.h"

namespace attendant::server {

class UnaryReactor;

struct UnaryMethod {
  const char* name;
  void (UnaryReactor::*submit)();  // makes the method's job of the message and queues it
};

// Permit -> message -> job -> response. A caller may half-close after its message or not.
//
// Four parties come in on threads of their own: gRPC's reactions, the permit, the receive timeout,
// and the thread that ends the job. Each of them first moves `phase_` on under `mutex_`, and gives
// up if another one was faster; End, which sets the last phase, is the only place that finishes the
// call. Operations of gRPC are started with the mutex held, so that none follows Finish; gRPC runs
// no reaction of this class inside them. Permits and pending permits are destroyed without it, as
// that runs other calls.
//
// gRPC holds the object (through self_) until OnDone, the job until it has ended; permit and
// timeout find it gone if they come late.
class UnaryReactor final : public grpc::ServerGenericBidiReactor,
                           public std::enable_shared_from_this<UnaryReactor> {
 public:
  // Null: there is no such unary method.
  static const UnaryMethod* FindMethod(absl::string_view name);

  // `context`, `method` and `call` outlive the call.
  static grpc::ServerGenericBidiReactor* Start(const ServiceContext& context,
                                               const UnaryMethod& method,
                                               grpc::GenericCallbackServerContext& call,
                                               std::unique_ptr<Admission::Slot> slot);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Phase { kAwaitingPermit, kReceiving, kComputing, kFinished };

  struct Ending {
    absl::Status status;  // OK: with a response
    grpc::ByteBuffer response = {};
    std::optional<Phase> only_in = {};  // else the call goes on
    bool retry_hint = false;
    absl::Duration queued = {};
  };

  UnaryReactor(const ServiceContext& context, const UnaryMethod& method,
               grpc::GenericCallbackServerContext& call, std::unique_ptr<Admission::Slot> slot);

  void AskForPermit();
  void OnPermit(std::unique_ptr<Admission::Permit> permit);
  void OnReceiveTimeout();
  template <typename JobOfMethod, auto Prepare, auto Respond>
  void Submit();
  absl::Status ReadError() const;
  void End(Ending ending);

  const ServiceContext& context_;
  const UnaryMethod& method_;
  grpc::GenericCallbackServerContext& call_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  grpc::ByteBuffer message_;  // the read owns it, and then Submit

  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kAwaitingPermit;
  std::shared_ptr<UnaryReactor> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Admission::Slot> slot_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Admission::PendingPermit> pending_permit_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Admission::Permit> permit_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm receive_timeout_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);  // the write owns it once it is under way
  RequestAccount account_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
