#include "server/rpc/stream_reactor.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// The error of an item that has not become part of its sequence, with the position to go on from.
absl::Status WithPosition(const absl::Status& status, const StreamSequence& sequence) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; sequence ", sequence.number(),
                                   " stays as it was, at ", sequence.tokens(), " tokens"));
}

}  // namespace

grpc::ServerGenericBidiReactor* StreamReactor::Start(const ServiceContext& context,
                                                     grpc::GenericCallbackServerContext& call,
                                                     std::unique_ptr<Admission::Slot> slot,
                                                     OpenStreams& open_streams) {
  std::shared_ptr<StreamReactor> reactor(
      new StreamReactor(context, call, std::move(slot), open_streams));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
    reactor->Advance();
  }
  open_streams.Add(reactor);
  return reactor.get();
}

StreamReactor::StreamReactor(const ServiceContext& context,
                             grpc::GenericCallbackServerContext& call,
                             std::unique_ptr<Admission::Slot> slot, OpenStreams& open_streams)
    : context_(context),
      call_(call),
      deadline_(DeadlineOf(call, context.clock)),
      open_streams_(open_streams),
      slot_(std::move(slot)) {}

void StreamReactor::Drain() {
  absl::MutexLock lock(&mutex_);
  if (!input_ended_) end_ = DrainingError();
  input_ended_ = true;
  Advance();
}

void StreamReactor::OnReadDone(bool ok) {
  grpc::ByteBuffer message;
  {
    absl::MutexLock lock(&mutex_);
    if (!ok) {
      reading_ = false;
      input_ended_ = true;
      if (call_.IsCancelled()) Lose();
      return Advance();
    }
    ++in_flight_;
    ++items_;
    message.Swap(&message_);
  }
  // Read on only when it is known which sequence this one belongs to.
  absl::StatusOr<StreamItem> item = ReceiveItem(message, context_);
  message.Clear();
  if (!item.ok()) return RefuseMalformed(item.status());
  const uint64_t id = item->message.id();
  const bool accepted = !context_.admission.closed();
  std::optional<Taken> taken;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (accepted) taken = Take(*std::move(item));
    Advance();
  }
  if (!accepted) taken = End({id, false, nullptr}, {DrainingError(), {}});
  Work(std::move(taken));
}

void StreamReactor::RefuseMalformed(const absl::Status& status) {
  RequestAccount(kName).Report(status, context_.metrics);
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  --in_flight_;
  input_ended_ = true;
  if (end_.ok()) end_ = status;
  Advance();
}

std::optional<StreamReactor::Taken> StreamReactor::Take(StreamItem item) {
  const uint64_t number = item.message.sequence();
  if (number == 0) return Taken{std::move(item), nullptr};
  const auto [entry, is_new] = sequences_.try_emplace(number);
  std::shared_ptr<StreamSequence> sequence = std::move(entry->second);
  entry->second = nullptr;
  if (is_new) sequence = std::make_shared<StreamSequence>(number);
  if (sequence != nullptr) return Taken{std::move(item), std::move(sequence)};
  held_back_ = std::move(item);
  return std::nullopt;
}

void StreamReactor::GiveBack(const Pending& pending, bool computed) {
  if (pending.sequence == nullptr) return;
  const bool goes = !pending.sequence->begun() || (pending.ends && computed);
  if (goes) {
    pending.sequence
        ->Release();  // first, so that a caller who has the response finds the room free
    sequences_.erase(pending.sequence->number());
  } else {
    sequences_[pending.sequence->number()] = pending.sequence;
  }
}

void StreamReactor::Work(std::optional<Taken> next) {
  while (next) {
    Pending pending{next->item.message.id(), next->item.message.ends(), next->sequence};
    const absl::Status status = Submit(*next, pending);
    if (status.ok()) return;
    next = End(std::move(pending), {status, absl::ZeroDuration()});
  }
}

absl::Status StreamReactor::Submit(const Taken& taken, Pending& pending) {
  auto prepared = PrepareItem(taken.item, taken.sequence, context_);
  if (!prepared.ok()) return prepared.status();
  pending.account.Describe(prepared->request);
  pending.tokens = prepared->request.layout.tokens();
  auto job =
      std::make_unique<ComputeJob>(std::move(prepared->request), cancelled_,
                                   [self = shared_from_this(), pending](ComputeJob::End result) {
                                     self->Work(self->End(pending, std::move(result)));
                                   });
  job->bytes = prepared->bytes;
  job->deadline = deadline_;
  std::unique_ptr<Job> queued = std::move(job);
  return context_.queue.Submit(queued);
}

std::optional<StreamReactor::Taken> StreamReactor::End(Pending pending, ComputeJob::End result) {
  const bool computed = result.response.ok();
  if (computed) pending.account.SetQueued(result.queued);
  pending.account.Report(result.response.status(), context_.metrics);
  if (pending.sequence != nullptr) {
    if (computed) {
      pending.sequence->Keep(pending.tokens);
    } else {
      result.response = WithPosition(result.response.status(), *pending.sequence);
    }
  }
  grpc::ByteBuffer response = computed ? ToStreamResponse(pending.id, *std::move(result.response))
                                       : ToStreamError(pending.id, result.response.status());
  absl::MutexLock lock(&mutex_);
  GiveBack(pending, computed);
  if (lost_) return std::nullopt;
  responses_.push_back(std::move(response));
  std::optional<Taken> next;
  if (std::optional<StreamItem> item = std::exchange(held_back_, std::nullopt)) {
    next = Take(*std::move(item));
  }
  Advance();
  return next;
}

void StreamReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  responses_.pop_front();
  --in_flight_;
  if (!ok) Lose();
  Advance();
}

void StreamReactor::OnCancel() {
  absl::MutexLock lock(&mutex_);
  Lose();
  Advance();
}

void StreamReactor::Lose() {
  if (lost_) return;
  lost_ = true;
  input_ended_ = true;
  held_back_.reset();
  end_ = LostCallerError(call_, context_);
  cancelled_->store(true, std::memory_order_relaxed);
}

void StreamReactor::Advance() {
  if (finished_) return;
  if (!writing_ && !responses_.empty() && !lost_) {
    writing_ = true;
    StartWrite(&responses_.front());
  }
  if (!reading_ && !input_ended_ && !held_back_ && in_flight_ < context_.limits.stream_window) {
    reading_ = true;
    StartRead(&message_);
  }
  LimitIdleness();
  if (!input_ended_ || writing_ || (in_flight_ > 0 && !lost_)) return;
  finished_ = true;
  Finish(ToGrpcStatus(end_));
}

void StreamReactor::LimitIdleness() {
  if (input_ended_ || !reading_ || in_flight_ > 0) return idle_.reset();
  if (idle_) return;
  const auto timeout = absl::ToChronoNanoseconds(context_.limits.stream_idle_timeout);
  // A new one each time: the callback of one that was cancelled may be yet to come.
  idle_.emplace();
  idle_->Set(std::chrono::system_clock::now() + timeout,
             [weak = weak_from_this(), items = items_](bool expired) {
               if (!expired) return;
               if (const auto self = weak.lock()) self->OnIdle(items);
             });
}

void StreamReactor::OnIdle(uint64_t items) {
  absl::MutexLock lock(&mutex_);
  if (input_ended_ || items != items_) return;
  end_ = absl::DeadlineExceededError(
      absl::StrCat("the stream's next item did not arrive within ",
                   absl::FormatDuration(context_.limits.stream_idle_timeout)));
  input_ended_ = true;
  Advance();
}

void StreamReactor::OnDone() {
  open_streams_.Remove(this);
  std::unique_ptr<Admission::Slot> slot;
  std::shared_ptr<StreamReactor> self;
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences;
  absl::MutexLock lock(&mutex_);
  responses_.clear();
  sequences.swap(sequences_);
  // Jobs that have just ended may still hold them.
  for (const auto& [number, sequence] : sequences) {
    if (sequence != nullptr) sequence->Release();
  }
  slot = std::move(slot_);
  self = std::move(self_);
}

}  // namespace attendant::server
