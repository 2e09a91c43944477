// One call of EncodeStream.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "server/admission/admission.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/execution/encode_job.h"
#include "server/request/service_context.h"
#include "server/rpc/open_streams.h"
#include "server/rpc/request_end.h"
#include "server/rpc/request_intake.h"

namespace attendant::server {

// Reads items while fewer than stream_window are in flight, that is, read and not yet answered on
// the wire; answers each when it is done. Of the parts of a sequence one is worked on at a time:
// the next one is held back until it is answered, and nothing behind it is read. Ends OK when the
// client has half-closed and every answer has left; with INVALID_ARGUMENT, also after those
// answers, when a message is malformed; with DEADLINE_EXCEEDED when everything is answered and no
// further item is complete in time; at once when the caller is gone, whose queued items are then
// dropped. While the server drains, accepted items are answered and new ones refused with
// UNAVAILABLE.
//
// gRPC's reactions and the ends of jobs come on threads of their own. Each changes the state under
// `mutex_` and then calls Advance, the only place that starts an operation of gRPC: at most one
// read and one write at a time, and Finish last, never beside a write. Operations are started with
// the mutex held; gRPC runs no reaction of this class inside them.
//
// gRPC holds the object (through self_) until OnDone, every job until it has ended.
class StreamReactor final : public grpc::ServerGenericBidiReactor,
                            public std::enable_shared_from_this<StreamReactor> {
 public:
  static constexpr char kName[] = "EncodeStream";

  // `context`, `call` and `open_streams` outlive the call.
  static grpc::ServerGenericBidiReactor* Start(const ServiceContext& context,
                                               grpc::GenericCallbackServerContext& call,
                                               std::unique_ptr<Admission::Slot> slot,
                                               OpenStreams& open_streams);

  // Takes no further item, and ends with UNAVAILABLE once the accepted ones are answered. Any
  // thread.
  void Drain();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  StreamReactor(const ServiceContext& context, grpc::GenericCallbackServerContext& call,
                std::unique_ptr<Admission::Slot> slot, OpenStreams& open_streams);

  // An item and the sequence that it is a part of, which then is its own until it ends.
  struct Taken {
    StreamItem item;
    std::shared_ptr<StreamSequence> sequence;  // null: none
  };
  // What is known of an item until it is answered.
  struct Pending {
    uint64_t id;
    bool ends;  // its sequence
    std::shared_ptr<StreamSequence> sequence;
    int64_t tokens = 0;
    RequestAccount account = RequestAccount(kName);
  };

  // Takes up an item; none if it is held back. With the mutex held.
  std::optional<Taken> Take(StreamItem item);
  void GiveBack(const Pending& pending, bool computed);

  // Works on the item, and if it ends at once on that which was held back for it.
  void Work(std::optional<Taken> next);
  // Puts it into the queue. Not OK: it ends so.
  absl::Status Submit(const Taken& taken, Pending& pending);
  // Answers the item. What was held back for it goes on.
  std::optional<Taken> End(Pending pending, JobOutcome outcome);
  void RefuseMalformed(const absl::Status& status);
  void Lose();
  void Advance();
  // Waits for an item only so long while nothing else is to be done.
  void LimitIdleness();
  void OnIdle(uint64_t items);

  const ServiceContext& context_;
  grpc::GenericCallbackServerContext& call_;  // only in reactions: it may go when they are over
  const absl::Time deadline_;
  OpenStreams& open_streams_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  std::mutex mutex_;
  // The rest is guarded by mutex_.
  std::shared_ptr<StreamReactor> self_;
  std::unique_ptr<Admission::Slot> slot_;
  grpc::ByteBuffer message_;              // the read owns it while it is under way
  std::deque<grpc::ByteBuffer> answers_;  // the write owns the first while it is under way
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences_;  // null: an item has taken it
  std::optional<StreamItem> held_back_;
  std::optional<grpc::Alarm> idle_;  // while an item is waited for and none is in flight
  uint64_t items_ = 0;               // read so far
  int in_flight_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool input_ended_ = false;
  bool lost_ = false;  // the caller is gone: nothing more to answer
  bool finished_ = false;
  absl::Status end_;
};

}  // namespace attendant::server
