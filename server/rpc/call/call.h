// Call, the base class of all gRPC calls.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/account/request_recorder.h"
#include "server/admission/budget.h"
#include "server/admission/recent_size.h"
#include "server/base/fault.h"
#include "server/base/timer.h"
#include "server/request/inline_method.h"
#include "server/rpc/call/message_receiver.h"
#include "server/rpc/call/open_streams.h"
#include "server/rpc/call/request_end.h"

namespace attendant::server {

// The arguments with which a call starts.
struct CallArgs {
  // Must outlive the call.
  const MethodContext& context;
  RecentSize& recent;  // of the method
  grpc::CallbackServerContext& call;

  OpenStreams* open_streams = nullptr;  // only of streams; outlives the call
  std::string peer = {};
  Budget::Reservation place = {};               // a slot, or a place among the streams
  Budget::Reservation memory = {};              // for a stream, its permit to receive
  std::optional<RequestRecorder> account = {};  // nullopt if the call counts in no metric
};

// The result of a call.
struct CallEnd {
  absl::Status status;                        // OK: sent after the response, if any
  grpc::ByteBuffer response = {};             // invalid if there is no response
  Budget::Reservation memory = {};            // of the response, until it is sent
  std::optional<absl::Duration> queued = {};  // time in the queue, for a job
};

// A call from its headers until gRPC is done with it. Until then, gRPC keeps the object alive
// (through self_).
//
// Reactions of gRPC, the timer, the connection, Drain and derived classes enter a call on several
// threads. Each enters through React, which ends the call if the step returns an error or throws.
// Other code therefore needs no error handlers, but every resource needs an owner.
//
// `mutex_` guards the state. gRPC operations start with the mutex held, so that none follows
// Finish; gRPC does not run reactions of this class inside them. Budget reservations are released
// without the mutex, because that runs other calls.
class Call : public grpc::ServerGenericBidiReactor,
             public OpenStream,
             public std::enable_shared_from_this<Call> {
 public:
  // Starts the call, and returns it for gRPC.
  static grpc::ServerGenericBidiReactor* Start(const std::shared_ptr<Call>& call);

  void Drain() final;
  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;

 protected:
  explicit Call(CallArgs entry);

  // Steps of a call, run without the mutex. An error, returned or thrown, ends the call.
  virtual absl::Status Begin() = 0;
  // `permit` is the permit that the receiver returned.
  virtual absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation permit) = 0;
  // The client has half-closed or disconnected.
  virtual absl::Status OnNoMessage();
  virtual absl::Status OnWritten(bool /*ok*/) { return absl::OkStatus(); }
  virtual void OnLost();
  // Called last: releases the derived class's resources.
  virtual void OnEnd() {}
  // Ends the call after a failed step.
  virtual void OnFault(const absl::Status& status) noexcept { End({status}); }

  // Runs a step that returns nothing or an absl::Status. The call must be alive.
  template <typename Step>
  void React(Step step) noexcept {
    const absl::Status status = Guarded(step);
    if (!status.ok()) OnFault(status);
  }

  // Starts reading a message unless the call has ended: one with tensors under a permit, or one
  // that holds little more than a name without.
  void Receive(Budget::Reservation permit = {});

  // Finishes the call and counts its request, once. Releases the receiver's permit first, so that a
  // client that has the response finds the memory free.
  void End(CallEnd end) noexcept;
  // Ends the call if it is waiting for a message.
  void EndReceiving(const absl::Status& status) noexcept;
  // Called when there is no memory for received data, or the server drains.
  virtual void GiveUp(const absl::Status& status) { EndReceiving(status); }
  // Describes the call to its connection.
  ReceivingCall Receiving();
  // Finishes a call that has no write in progress, without counting a request.
  void Finish(const absl::Status& status, grpc::ByteBuffer* response = nullptr) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Calls `expired` at `time` (RealClock) with the mutex held, replacing the previous limit. An
  // error ends the call if it is waiting for a message.
  using Expired = absl::Status (Call::*)();
  void Limit(absl::Time time, Expired expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels the call if sending takes too long. Sets no limit if there is no memory for one.
  void LimitSending() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MethodContext& method_context_;
  const ServiceContext& context_;
  grpc::CallbackServerContext& call_;  // only in reactions, and before done_
  const std::string peer_;
  const std::shared_ptr<MeteredConnection> connection_;
  const absl::Time started_;

  mutable absl::Mutex mutex_;
  // A slot or a place among the streams. Shared, so that the later one of End, which counts the
  // call, and OnDone gives it back. The allocation is small compared with the call itself.
  std::shared_ptr<Budget::Reservation> place_ ABSL_GUARDED_BY(mutex_);
  Budget::Reservation memory_ ABSL_GUARDED_BY(mutex_);  // of the entry, then of the response
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);    // owned by the read in progress
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);   // owned by the write in progress
  // Of a call that is one request; until it is counted.
  std::optional<RequestRecorder> account_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // start nothing else
  bool done_ ABSL_GUARDED_BY(mutex_) = false;   // `call_` is invalid

 private:
  absl::Status TakeMessage(bool ok);
  void OnLimit(uint64_t number, Expired expired);
  void LimitReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnReceiveTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnSendTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(CallEnd end, bool only_receiving) noexcept;

  const bool counted_;
  OpenStreams* const open_streams_;  // null if the call is not a stream
  std::shared_ptr<Call> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MessageReceiver> message_receiver_
      ABSL_GUARDED_BY(mutex_);                                  // while a message is read
  std::optional<Timer::Ticket> limit_ ABSL_GUARDED_BY(mutex_);  // for receiving or sending
  uint64_t limits_ ABSL_GUARDED_BY(mutex_) = 0;                 // number of limits set so far
};

}  // namespace attendant::server
