// One call of EncodeStream.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/unfinished_bodies.h"
#include "server/base/time_limit.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/execution/compute_job.h"
#include "server/execution/prepare_request.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call_entry.h"
#include "server/rpc/open_streams.h"

namespace attendant::server {

// Reads items while fewer than stream_window are in flight, that is, read and not yet answered on
// the wire, and while the caller has less than its part of the queue waiting; two may always be in
// flight. Answers each when it is done. One chunk of a sequence is worked on at a time: the next
// one is held back until it is answered, and nothing behind it is read. So is an item that finds no
// slot or no memory while others are in flight, until an answer has left. Ends OK when the client
// has half-closed and every response has left; with INVALID_ARGUMENT, also after those responses,
// when a message is malformed; with DEADLINE_EXCEEDED when everything is answered and no further
// item is complete in time; with RESOURCE_EXHAUSTED when its next item takes memory that it is not
// charged with and the server is short of it; at once when the caller is gone, whose queued items
// are then dropped. While the server drains, accepted items are answered and new ones refused with
// UNAVAILABLE.
//
// gRPC's reactions and the ends of jobs come on threads of their own. Each changes the state under
// `mutex_` and then calls Advance, the only place that starts an operation of gRPC: at most one
// read and one write at a time, and Finish last, never beside a write. Operations are started with
// the mutex held; gRPC runs no reaction of this class inside them.
//
// An open stream holds a permit for the message that may be on its way, or is held back, and no
// slot. Each item takes a slot and its memory when it has arrived, and holds them until its answer
// has left. An item alone in flight does without a slot, as the stream has its place among the
// streams; without memory it is answered RESOURCE_EXHAUSTED. What is held is given back without the
// mutex, as that runs other calls.
//
// gRPC holds the object (through self_) until OnDone, every job until it has ended.
class StreamReactor final : public grpc::ServerGenericBidiReactor,
                            public OpenStream,
                            public std::enable_shared_from_this<StreamReactor> {
 public:
  static constexpr char kName[] = "EncodeStream";

  // `open_streams` outlives the call.
  static grpc::ServerGenericBidiReactor* Start(CallEntry entry, OpenStreams& open_streams);

  void Drain() override;
  int64_t UnchargedBytes() override;
  void Shed() override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  StreamReactor(CallEntry entry, OpenStreams& open_streams);

  // An item and the sequence that it is a chunk of, which then is its own until it ends.
  struct Taken {
    StreamItem item;
    bool may_wait;  // for room: the permit covers it
    Held held = {};
    std::shared_ptr<StreamSequence> sequence = nullptr;  // null: none
  };
  // An item that has no response yet.
  struct Pending {
    uint64_t id;
    bool ends;  // its sequence
    std::shared_ptr<StreamSequence> sequence;
    RequestAccount account;
    ChunkTokens tokens = {};  // of a chunk
  };
  struct Answer {
    grpc::ByteBuffer message;
    Held held;
  };

  // Takes up an item; none if it is held back.
  std::optional<Taken> Take(Taken taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(const Pending& pending, bool computed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Works on the item, and if it ends at once on that which was held back for it.
  void Work(std::optional<Taken> next);
  // Puts it into the queue. `alone`: it is the only item in flight. Not OK: it ends so or is held
  // back.
  absl::Status Submit(Taken& taken, Pending& pending, bool alone);
  // The slot of an item, and the memory for `bytes`.
  absl::Status Admit(int64_t bytes, bool alone, Held& held);
  // Keeps an item that finds no room until an answer has left. Returns it if all have left.
  std::optional<Taken> HoldBack(Taken taken, const Pending& pending);
  // Returns what was held back, if it can be worked on now.
  std::optional<Taken> Resume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReadsOn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAlone() const;
  // What was worked on is in the queue, or ends.
  void LetGo();
  // Answers the item. What was held back for it goes on.
  std::optional<Taken> End(Pending pending, ComputeJob::End result);
  void Receive();
  void RefuseMalformed(const absl::Status& status);
  // Ends the stream, which has thrown, without what is not answered yet.
  void Abandon(const absl::Status& status) noexcept;
  void Lose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream if nothing is to be done and no item arrives in time.
  void LimitIdleness() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnIdle(uint64_t items);
  // Ends the call if what is being sent now does not leave in time.
  void LimitSending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSendTimeout(uint64_t sends);

  const ServiceContext& context_;
  RecentSize& recent_;
  grpc::CallbackServerContext& call_;  // only in reactions and before OnDone
  const std::string peer_;
  const absl::Time deadline_;
  const RequestAccount account_;  // from which each item has one
  OpenStreams& open_streams_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  std::shared_ptr<StreamReactor> self_ ABSL_GUARDED_BY(mutex_);
  Budget::Hold place_ ABSL_GUARDED_BY(mutex_);
  // Changes only in one reaction at a time: OnReadDone, which locks `mutex_` afterwards, then
  // OnDone.
  Budget::Hold permit_;
  // The read owns it while it is under way.
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);
  std::optional<UnfinishedBodies::AwaitedItem> awaited_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  // The write owns the first while it is under way. A std::deque would allocate when it is moved.
  std::list<Answer> responses_ ABSL_GUARDED_BY(mutex_);
  // Null: an item has taken it.
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences_ ABSL_GUARDED_BY(mutex_);
  std::optional<Taken> held_back_ ABSL_GUARDED_BY(mutex_);
  // While an item is waited for and none is in flight.
  TimeLimit idle_limit_ ABSL_GUARDED_BY(mutex_);
  TimeLimit send_limit_ ABSL_GUARDED_BY(mutex_);
  uint64_t items_ ABSL_GUARDED_BY(mutex_) = 0;  // read so far
  uint64_t sends_ ABSL_GUARDED_BY(mutex_) = 0;  // begun so far: answers, and the end of the call
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;  // on an item, and none is held back meanwhile
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool shed_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;  // the caller is gone: nothing more to answer
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // `call_` is gone
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
