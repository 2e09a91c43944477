// StreamReactor, an EncodeStream call.
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

// Reads items while fewer than stream_window are in flight (read, but their response not yet
// written) and the client holds less than its share of the queue; two may always be in flight.
// Responds to each item when it is done. One chunk of a sequence is processed at a time: the next
// chunk is held back until the response is made, and no later item is read. An item that finds no
// slot or memory while others are in flight is held back likewise until a response is written.
//
// The stream ends:
// - OK when the client has half-closed and all responses are written;
// - INVALID_ARGUMENT, after those responses, when a message is malformed;
// - DEADLINE_EXCEEDED when all items are answered and no further item completes in time;
// - RESOURCE_EXHAUSTED when there is no memory for unfinished messages of its connection;
// - at once when the client disconnects, dropping queued items.
// While the server drains, it answers accepted items and refuses new ones with UNAVAILABLE.
//
// Job completions, Drain and GiveUp run on other threads. Each change of state is followed by
// Advance, the only function that starts gRPC operations: at most one read and one write at a time,
// and Finish last, never during a write. If a step fails, the stream ends without the remaining
// responses.
//
// An open stream holds no slot, but a permit for the message that may be arriving or is held back.
// Each item takes a slot and memory when it has arrived, and holds them until its response is
// written. A single item in flight needs no slot, because the stream has its place among the
// streams; without memory it gets RESOURCE_EXHAUSTED. Every job keeps the stream alive until it
// ends.
class StreamReactor final : public Call {
 public:
  explicit StreamReactor(CallArgs entry);

 private:
  // An item, and the sequence of which it is a chunk. The item owns the sequence until it ends.
  struct Taken {
    StreamItem item;
    absl::Time arrived;
    int64_t tokenizing_bytes = 0;
    bool may_wait = false;  // if the budget is full, because the permit covers it
    Held held = {};
    std::shared_ptr<StreamSequence> sequence = nullptr;  // null if not a chunk
  };
  // An item without a response.
  struct Pending {
    uint64_t id;
    bool ends;  // whether the sequence ends
    std::shared_ptr<StreamSequence> sequence;
    RequestRecorder account;
    ChunkTokens tokens = {};  // of the chunk
  };
  struct Answer {
    grpc::ByteBuffer message;
    Held held;
  };

  absl::Status Begin() override;
  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation permit) override;
  absl::Status OnNoMessage() override;
  absl::Status OnWritten(bool ok) override;
  void OnLost() override;
  void GiveUp(const absl::Status& status) override;
  void OnEnd() override;
  void OnFault(const absl::Status& status) noexcept override { Lose(status); }

  // Starts an item; returns nullopt if it is held back.
  std::optional<Taken> Take(Taken&& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases the sequence if it has not begun, `ends`, or its model has been retired. Returns
  // whether its number is free for another: not if chunks that the client sent for a retired model
  // may follow. Call without the mutex.
  static bool EndSequence(const Pending& pending, bool ends);
  // Returns the sequence to the stream for its next chunk, unless EndSequence has released it
  // (`over`).
  void GiveBack(const Pending& pending, bool over) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Processes the item and, if it ends at once, the item that was held back for it. Items with
  // texts continue on a worker; `on_worker` is set there.
  void Work(std::optional<Taken> next, bool on_worker = false);
  // Enqueues the item. `alone`: no other item is in flight. Returns an error if the item ends with
  // it or is held back.
  absl::Status Submit(Taken& taken, Pending& pending, bool alone);
  // Takes the item's slot, and memory for `bytes`.
  absl::Status Admit(int64_t bytes, bool alone, Held& held);
  // Keeps an item that finds no room until a response is written. Returns the item if none is
  // outstanding.
  std::optional<Taken> HoldBack(Taken taken, const Pending& pending);
  // Returns the held-back item if it can proceed now.
  std::optional<Taken> Resume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReadsOn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAlone() const;
  // The current item has been enqueued or has ended.
  void LetGo();
  // Responds to the item, and returns the item that was held back for it.
  std::optional<Taken> Respond(Pending pending, ComputeJob::End result);
  void RefuseMalformed(const absl::Status& status);
  // Stops reading, and ends the stream with `status` once accepted items are answered.
  void EndInput(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream without the remaining responses.
  void Lose(const absl::Status& status) noexcept;
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream if it has no work and no item arrives in time.
  void LimitIdleness() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RecentSize& recent_;
  const absl::Time deadline_;
  const RequestRecorder item_account_;  // template for the items' accounts
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  // Changes in only one reaction at a time: OnMessage, which then locks `mutex_`, and OnEnd.
  Budget::Reservation permit_;
  std::optional<MeteredConnection::Receiver> receiver_;   // until OnEnd; guarded like `permit_`
  std::deque<Answer> responses_ ABSL_GUARDED_BY(mutex_);  // the write owns the first message
  // Null while an item owns the sequence.
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences_ ABSL_GUARDED_BY(mutex_);
  std::optional<Taken> held_back_ ABSL_GUARDED_BY(mutex_);
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // The stream waits for an item and none is in flight; the call's time limit applies.
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;  // on an item, and none is held back meanwhile
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The client has disconnected: write no further responses.
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
