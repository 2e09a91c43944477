// A stream of grpc.reflection.v1alpha.ServerReflection.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/budget.h"
#include "server/base/time_limit.h"
#include "server/rpc/call/body_receipt.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call_entry.h"
#include "server/rpc/open_streams.h"

namespace attendant::server {

// Reads a request, writes its answer, and so on, until the client half-closes. Ends with
// INVALID_ARGUMENT if a message is malformed or too large, with DEADLINE_EXCEEDED if none is
// complete in time, and with UNAVAILABLE when the server drains.
//
// Tools ask their few questions and go, and gRPC shows a message only when it is whole. So there
// are few of these streams, the time for a message runs from the start, and what has come of one is
// charged as that of a unary method is (call/body_receipt.h). Otherwise it holds what an
// EncodeStream does: a place among the streams while it is open, and a slot from the arrival of a
// request until its answer has left.
//
// gRPC's reactions, the time limit and Drain come on threads of their own, and change the call
// under `mutex_`. What is held is given back without it, as that runs other calls. gRPC holds the
// object (through self_) until OnDone.
class ReflectionCall final : public grpc::ServerGenericBidiReactor,
                             public OpenStream,
                             public std::enable_shared_from_this<ReflectionCall> {
 public:
  static constexpr char kName[] = "ServerReflectionInfo";
  static constexpr char kPath[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

  // `open_streams` outlives the call.
  static grpc::ServerGenericBidiReactor* Start(CallEntry entry, OpenStreams& open_streams);

  void Drain() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  ReflectionCall(CallEntry entry, OpenStreams& open_streams);

  // Each of these returns the error that the stream ends with.
  absl::Status Begin();
  absl::Status Read();
  absl::Status Receive();
  absl::Status Answer();

  void LimitReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReceiveTimeout(uint64_t step);
  void LimitSending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) noexcept;

  const ServiceContext& context_;
  grpc::CallbackServerContext& call_;
  const std::string peer_;
  const RequestAccount account_;  // from which each request has one
  OpenStreams& open_streams_;

  // Only reactions use these, one at a time. Each locks `mutex_` after its last use of them, and
  // OnDone before it takes them.
  Budget::Hold place_;             // among all streams
  Budget::Hold reflection_place_;  // among those of reflection
  Budget::Hold memory_;            // of the message and its answer, but while it is the receipt's
  Budget::Hold slot_;              // while a request is answered
  grpc::ByteBuffer message_;       // the read owns it while it is under way

  absl::Mutex mutex_;
  std::shared_ptr<ReflectionCall> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<BodyReceipt> receipt_ ABSL_GUARDED_BY(mutex_);  // while a message is read
  TimeLimit time_limit_ ABSL_GUARDED_BY(mutex_);                  // for receiving or sending
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;                     // that the time limit is for
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mutex_);  // the write owns it while it is under way
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // `call_` is gone
};

}  // namespace attendant::server
