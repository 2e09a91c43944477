// One call of a unary method.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/base/time_limit.h"
#include "server/execution/compute_job.h"
#include "server/execution/prepare_request.h"
#include "server/request/quick_method.h"
#include "server/rpc/call/body_receipt.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call/small_receipt.h"
#include "server/rpc/call_entry.h"

namespace attendant::server {

class UnaryReactor;

// A method has a job, which `submit` queues, or is quick.
struct UnaryMethod {
  const char* service;  // its full name
  const char* name;
  void (UnaryReactor::*submit)() = nullptr;
  QuickMethod quick = nullptr;
};

// Permit -> message -> job -> response. A caller may half-close after its message or not.
//
// Quick methods have no job, and their small messages need no permit (call/small_receipt.h).
//
// The request's memory is held without a gap: by the permit while the body is received
// (call/body_receipt.h), by the job until it has ended, and by this object until the answer has
// left or the call is over.
//
// Five parties come in on threads of their own: gRPC's reactions, the permit, the time limits for
// receiving and for sending, and the thread that ends the job. Each of the first four that ends the
// call first moves `phase_` on under `mutex_`, and gives up if another one was faster; End, which
// sets the last phase, is the only place that finishes the call. Reads are started with the mutex
// held, so that none follows Finish; gRPC runs no reaction of this class inside them. What is held
// of the budgets is given back without it, as that runs other calls.
//
// gRPC holds the object (through self_) until OnDone, the job until it has ended; permit and
// time limits find it gone if they come late.
class UnaryReactor final : public grpc::ServerGenericBidiReactor,
                           public std::enable_shared_from_this<UnaryReactor> {
 public:
  static absl::Span<const UnaryMethod> Methods();
  // `path` is "/service/name". Null: there is no such unary method.
  static const UnaryMethod* FindMethod(absl::string_view path);

  // `method` outlives the call.
  static grpc::ServerGenericBidiReactor* Start(const UnaryMethod& method, CallEntry entry);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Phase { kAwaitingPermit, kReceiving, kComputing, kFinished };

  struct Ending {
    absl::Status status;  // OK: with a response
    grpc::ByteBuffer response = {};
    std::optional<Phase> only_in = {};  // else the call goes on
    absl::Duration queued = {};
    Budget::Hold memory = {};  // of the response
  };

  UnaryReactor(const UnaryMethod& method, CallEntry entry);

  void ReadSmall();
  void AskForPermit();
  void OnPermit(Budget::Hold permit);
  void LimitReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReceiveTimeout();
  void OnSendTimeout();
  template <auto Prepare>
  void Submit();
  void Answer();
  absl::Status ReadError() const;
  void End(Ending ending) noexcept;

  const MethodContext& method_context_;
  const ServiceContext& context_;
  const UnaryMethod& method_;
  RecentSize& recent_;
  grpc::CallbackServerContext& call_;
  const std::string peer_;
  const absl::Time started_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  grpc::ByteBuffer message_;  // the read owns it, and then Submit

  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kAwaitingPermit;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // `call_` is gone
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<UnaryReactor> self_ ABSL_GUARDED_BY(mutex_);
  Budget::Hold slot_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Budget::Pending> pending_permit_ ABSL_GUARDED_BY(mutex_);
  // The permit but while it is the receipt's, later the answer's.
  Budget::Hold memory_ ABSL_GUARDED_BY(mutex_);
  // One of the two is set while a message is received. OnReceiveTimeout takes this one out for a
  // moment.
  std::unique_ptr<BodyReceipt> receipt_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SmallReceipt> small_receipt_ ABSL_GUARDED_BY(mutex_);
  TimeLimit time_limit_ ABSL_GUARDED_BY(mutex_);       // for receiving, then for sending
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);  // the write owns it once it is under way
  RequestAccount account_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
