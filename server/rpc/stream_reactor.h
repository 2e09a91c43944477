// One call of EncodeStream.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/execution/compute_job.h"
#include "server/execution/prepare_request.h"
#include "server/rpc/call/call.h"

namespace attendant::server {

// Reads items while fewer than stream_window are in flight, that is, read and not yet answered on
// the wire, and while the caller has less than its part of the queue waiting; two may always be in
// flight. Answers each when it is done. One chunk of a sequence is worked on at a time: the next
// one is held back until it is answered, and nothing behind it is read. So is an item that finds no
// slot or no memory while others are in flight, until an answer has left. Ends OK when the client
// has half-closed and every response has left; with INVALID_ARGUMENT, also after those responses,
// when a message is malformed; with DEADLINE_EXCEEDED when everything is answered and no further
// item is complete in time; with RESOURCE_EXHAUSTED when there is no room for what its connection
// has received of unfinished messages; at once when the caller is gone, whose queued items are then
// dropped. While the server drains, accepted items are answered and new ones refused with
// UNAVAILABLE.
//
// The ends of jobs, Drain and GiveUp come on threads of their own. Whoever changes the state then
// calls Advance, the only place that starts an operation of gRPC: at most one read and one write at
// a time, and Finish last, never beside a write. If a step fails, the stream ends without what is
// not answered yet.
//
// An open stream holds a permit for the message that may be on its way, or is held back, and no
// slot. Each item takes a slot and its memory when it has arrived, and holds them until its answer
// has left. An item alone in flight does without a slot, as the stream has its place among the
// streams; without memory it is answered RESOURCE_EXHAUSTED. Every job holds the stream until it
// has ended.
class StreamReactor final : public Call {
 public:
  explicit StreamReactor(CallEntry entry);

 private:
  // An item and the sequence that it is a chunk of, which then is its own until it ends.
  struct Taken {
    StreamItem item;
    int64_t tokenizing_bytes = 0;
    bool may_wait = false;  // for room: the permit covers it
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

  absl::Status Begin() override;
  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Hold permit) override;
  absl::Status OnNoMessage() override;
  absl::Status OnWritten(bool ok) override;
  void OnLost() override;
  void GiveUp(const absl::Status& status) override;
  void OnEnd() override;
  void OnFault(const absl::Status& status) noexcept override { Lose(status); }

  // Takes up an item; none if it is held back.
  std::optional<Taken> Take(Taken&& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases the sequence if no chunk follows, and returns whether that is so. Without the mutex.
  static bool EndSequence(const Pending& pending, bool computed);
  // Lets the next chunk have the sequence. `over`: EndSequence has released it.
  void GiveBack(const Pending& pending, bool over) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Works on the item, and if it ends at once on that which was held back for it. `on_worker`: as
  // it is there, the item may have texts; elsewhere such an item goes there first.
  void Work(std::optional<Taken> next, bool on_worker = false);
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
  std::optional<Taken> Respond(Pending pending, ComputeJob::End result);
  void RefuseMalformed(const absl::Status& status);
  // Reads no further, and ends the stream with `status` once what is accepted is answered.
  void EndInput(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream without what is not answered yet.
  void Lose(const absl::Status& status) noexcept;
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream if nothing is to be done and no item arrives in time.
  void LimitIdleness() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RecentSize& recent_;
  const absl::Time deadline_;
  const RequestAccount item_account_;  // from which each item has one
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  // Changes only in one reaction at a time: OnMessage, which locks `mutex_` afterwards, then OnEnd.
  Budget::Hold permit_;
  std::optional<MeteredConnection::Receiver> receiver_;   // until OnEnd; used as `permit_` is
  std::deque<Answer> responses_ ABSL_GUARDED_BY(mutex_);  // the write owns the first's message
  // Null: an item has taken it.
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences_ ABSL_GUARDED_BY(mutex_);
  std::optional<Taken> held_back_ ABSL_GUARDED_BY(mutex_);
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // An item is waited for and none is in flight, which the call's limit is for.
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;  // on an item, and none is held back meanwhile
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;  // the caller is gone: nothing more to answer
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
