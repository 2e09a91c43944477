// Call, the part that all calls of gRPC have in common.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/fault.h"
#include "server/base/timer.h"
#include "server/rpc/call/call_entry.h"
#include "server/rpc/call/message_receipt.h"
#include "server/rpc/call/request_end.h"

namespace attendant::server {

// The end of a call.
struct CallEnd {
  absl::Status status;                        // OK: after the response, if there is one
  grpc::ByteBuffer response = {};             // invalid: none
  Budget::Hold memory = {};                   // of the response, until it has left
  std::optional<absl::Duration> queued = {};  // of a job
};

// A call from its headers until gRPC is done with it. gRPC holds the object (through self_) until
// then.
//
// A call is entered on several threads: by reactions of gRPC, the timer, its connection, Drain, and
// others that a derived class lets in. Each enters through React, which ends the call if the step
// returns an error or throws. Other code therefore needs no handlers, but owners for all that it
// holds.
//
// The state changes under `mutex_`. gRPC's operations are started with the mutex held, so that none
// follows Finish; gRPC runs no reaction of this class inside them. Holds of budgets are given back
// without the mutex, because that runs other calls.
class Call : public grpc::ServerGenericBidiReactor,
             public OpenStream,
             public std::enable_shared_from_this<Call> {
 public:
  // Begins the call, and returns it for gRPC.
  static grpc::ServerGenericBidiReactor* Start(const std::shared_ptr<Call>& call);

  void Drain() final;
  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;

 protected:
  explicit Call(CallEntry entry);

  // The steps of a call, without the mutex. An error, returned or thrown, ends the call.
  virtual absl::Status Begin() = 0;
  // `permit` is what the receipt returned.
  virtual absl::Status OnMessage(grpc::ByteBuffer message, Budget::Hold permit) = 0;
  // The client has half-closed, or is gone.
  virtual absl::Status OnNoMessage();
  virtual absl::Status OnWritten(bool /*ok*/) { return absl::OkStatus(); }
  virtual void OnLost();
  // Nothing else comes: gives back what the derived class holds.
  virtual void OnEnd() {}
  // Ends the call because of a step.
  virtual void OnFault(const absl::Status& status) noexcept { End({status}); }

  // Runs a step, which returns nothing or an absl::Status. The call must exist meanwhile.
  template <typename Step>
  void React(Step step) noexcept {
    const absl::Status status = Guarded(step);
    if (!status.ok()) OnFault(status);
  }

  // Each starts to read a message, unless the call has ended: one with tensors, for which it has a
  // permit, or one that hardly holds more than a name.
  void ReceiveBody(Budget::Hold permit);
  void ReceiveSmall();

  // Finishes the call and counts its request, once. The receipt's permit is given back first, so
  // that a client that has the answer finds the room free.
  void End(CallEnd end) noexcept;
  // Ends the call if it waits for the message of a receipt.
  void EndReceiving(const absl::Status& status) noexcept;
  // There is no room for what the call receives, or the server drains.
  virtual void GiveUp(const absl::Status& status) { EndReceiving(status); }
  // Describes the call to its connection.
  ReceivingCall Receiving();
  // Starts to finish the call, which has no write under way and counts no request.
  void FinishNow(const absl::Status& status) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Calls `expired` with the mutex held at `time`, by RealClock(), in place of the limit that was
  // set before. An error ends the call if it waits for the message of a receipt.
  using Expired = absl::Status (Call::*)();
  void Limit(absl::Time time, Expired expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels the call if what is sent now does not leave in time. If there is no memory for a limit,
  // there is none.
  void LimitSending() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MethodContext& method_context_;
  const ServiceContext& context_;
  grpc::CallbackServerContext& call_;  // only in reactions, and before done_
  const std::string peer_;
  const std::shared_ptr<MeteredConnection> connection_;
  const absl::Time started_;

  mutable absl::Mutex mutex_;
  Budget::Hold place_ ABSL_GUARDED_BY(mutex_);         // until OnDone, and until it is counted
  Budget::Hold memory_ ABSL_GUARDED_BY(mutex_);        // of the entry, then of the response
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);   // the read owns it while it is under way
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);  // the write owns it while it is under way
  // Of the call, if it is one request, until it is counted.
  std::optional<RequestAccount> account_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // nothing else is started
  bool done_ ABSL_GUARDED_BY(mutex_) = false;   // `call_` is gone

 private:
  void Receive(const ReceiptLimits& limits, Budget::Hold permit);
  absl::Status TakeMessage(bool ok);
  void OnLimit(uint64_t number, Expired expired);
  void LimitReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnReceiveTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnSendTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(CallEnd end, bool only_receiving) noexcept;
  void Finish(const absl::Status& status, grpc::ByteBuffer* response) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool counted_;
  OpenStreams* const open_streams_;  // null if the call is not a stream
  std::shared_ptr<Call> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MessageReceipt> receipt_ ABSL_GUARDED_BY(mutex_);  // while a message is read
  std::optional<Timer::Ticket> limit_ ABSL_GUARDED_BY(mutex_);       // for receiving or sending
  uint64_t limits_ ABSL_GUARDED_BY(mutex_) = 0;                      // set so far
  bool counting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant::server
