#include "server/rpc/stream_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/peer.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
grpc::ServerGenericBidiReactor* StreamReactor::Start(CallEntry entry, OpenStreams& open_streams) {
  std::shared_ptr<StreamReactor> reactor(new StreamReactor(std::move(entry), open_streams));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
    reactor->Advance();
  }
  const absl::Status status = Guarded([&] { open_streams.Add(reactor); });
  if (!status.ok()) reactor->Abandon(status);
  return reactor.get();
}

StreamReactor::StreamReactor(CallEntry entry, OpenStreams& open_streams)
    : context_(entry.context.service),
      recent_(entry.recent),
      call_(entry.call),
      peer_(std::move(entry.peer)),
      deadline_(DeadlineOf(call_, context_.clock)),
      account_(std::move(entry.account)),
      open_streams_(open_streams),
      place_(std::move(entry.place)),
      permit_(std::move(entry.memory)),
      awaited_(std::in_place, context_.admission.unfinished_bodies(), ConnectionOf(call_.peer())) {}

void StreamReactor::Drain() {
  const absl::Status draining = Guarded(DrainingError);
  absl::MutexLock lock(&mutex_);
  if (!input_ended_) end_ = draining;
  input_ended_ = true;
  Advance();
}

int64_t StreamReactor::UnchargedBytes() {
  absl::MutexLock lock(&mutex_);
  if (!awaited_) return 0;
  return std::min(awaited_->Unexplained(), context_.limits.max_request_bytes);
}

void StreamReactor::Shed() {
  const absl::Status ended = Guarded([&] {
    const absl::Status status =
        Refused(Refusal::kMemory,
                "the server is short of memory, and the stream's next item may take more than it "
                "is charged with");
    absl::MutexLock lock(&mutex_);
    if (done_) return;
    // What it waits for, such as that its answers leave, has taken too long.
    if (std::exchange(shed_, true)) return call_.TryCancel();
    if (!input_ended_) end_ = status;
    input_ended_ = true;
    Advance();
  });
  if (!ended.ok()) Abandon(ended);
}

void StreamReactor::OnReadDone(bool ok) {
  const absl::Status status = Guarded([&] {
    if (ok) return Receive();
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    awaited_->Finish(0);
    input_ended_ = true;
    if (call_.IsCancelled()) Lose();
    Advance();
  });
  if (!status.ok()) Abandon(status);
}

void StreamReactor::Abandon(const absl::Status& status) noexcept {
  absl::MutexLock lock(&mutex_);
  cancelled_->store(true, std::memory_order_relaxed);
  input_ended_ = true;
  if (!lost_) end_ = status;
  lost_ = true;
  Advance();
}

void StreamReactor::Receive() {
  grpc::ByteBuffer message;
  {
    absl::MutexLock lock(&mutex_);
    ++in_flight_;
    ++items_;
    message.Swap(&message_);
    awaited_->Finish(static_cast<int64_t>(message.Length()));
  }
  absl::StatusOr<StreamItem> item = ReceiveItem(message, context_);
  message.Clear();
  if (!item.ok()) return RefuseMalformed(item.status());
  recent_.Report(item->bytes);
  // For this one while it waits, and for the next. A permit that finds no more room stays as it is,
  // and an item beyond it is charged at once.
  permit_.Change(std::min(recent_.bytes(), context_.limits.max_request_bytes), HeldFor::kReceiving);
  const bool may_wait = item->bytes <= permit_.amount();
  Held held;
  absl::Status charged = context_.admission.TakeSlotIfFree(peer_, held.slot);
  if (charged.ok() && !may_wait) {
    charged = context_.admission.Charge({peer_, item->bytes, HeldFor::kRequest}, held.memory);
  }
  Pending refused{item->message.id(), false, nullptr, account_.ForItem(item->arrived)};
  std::optional<Taken> taken;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (charged.ok()) taken = Take({*std::move(item), may_wait, std::move(held)});
    Advance();
  }
  if (!charged.ok()) taken = End(std::move(refused), {charged});
  Work(std::move(taken));
}

absl::Status StreamReactor::Admit(int64_t bytes, bool alone, Held& held) {
  Admission& admission = context_.admission;
  if (held.slot.empty() && !alone) {
    if (absl::Status status = admission.TakeSlot(peer_, held.slot); !status.ok()) return status;
  }
  return admission.Charge({peer_, bytes, HeldFor::kRequest}, held.memory);
}

void StreamReactor::RefuseMalformed(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    --in_flight_;
    input_ended_ = true;
    if (end_.ok()) end_ = status;
    Advance();
  }
  account_.ForItem(context_.clock.Now()).Report(status, context_);
}

std::optional<StreamReactor::Taken> StreamReactor::Take(Taken taken) {
  const uint64_t number = taken.item.message.sequence();
  working_ = true;
  if (number == 0) return taken;
  const auto [entry, is_new] = sequences_.try_emplace(number);
  std::shared_ptr<StreamSequence> sequence = std::exchange(entry->second, nullptr);
  if (is_new) sequence = std::make_shared<StreamSequence>(number);
  if (sequence == nullptr) {
    working_ = false;
    held_back_ = std::move(taken);
    return std::nullopt;
  }
  taken.sequence = std::move(sequence);
  return taken;
}

void StreamReactor::GiveBack(const Pending& pending, bool computed) {
  if (pending.sequence == nullptr) return;
  if (!pending.sequence->begun() || (pending.ends && computed)) {
    // First, so that a client that has the response finds the memory free.
    pending.sequence->Release();
    sequences_.erase(pending.sequence->number());
  } else {
    sequences_[pending.sequence->number()] = pending.sequence;
  }
}

void StreamReactor::Work(std::optional<Taken> next) {
  while (next) {
    Pending pending{next->item.message.id(), next->item.message.ends(), next->sequence,
                    account_.ForItem(next->item.arrived)};
    const bool alone = IsAlone();
    const absl::Status status = Guarded([&] { return Submit(*next, pending, alone); });
    if (status.ok()) return LetGo();
    next->held = {};  // before the caller asks for it again
    if (absl::IsResourceExhausted(status) && !alone && next->may_wait) {
      next = HoldBack(*std::move(next), pending);
    } else {
      LetGo();
      next = End(std::move(pending), {status});
    }
  }
}

void StreamReactor::LetGo() {
  absl::MutexLock lock(&mutex_);
  working_ = false;
  Advance();
}

bool StreamReactor::IsAlone() const {
  absl::MutexLock lock(&mutex_);
  return in_flight_ == 1 || lost_;
}

std::optional<StreamReactor::Taken> StreamReactor::HoldBack(Taken taken, const Pending& pending) {
  absl::MutexLock lock(&mutex_);
  GiveBack(pending, /*computed=*/false);
  taken.sequence = nullptr;
  // The others may have left meanwhile.
  if (in_flight_ == 1 || lost_) return Take(std::move(taken));
  working_ = false;
  held_back_ = std::move(taken);
  return std::nullopt;
}

std::optional<StreamReactor::Taken> StreamReactor::Resume() {
  std::optional<Taken> taken = std::exchange(held_back_, std::nullopt);
  return taken && !lost_ ? Take(*std::move(taken)) : std::nullopt;
}

absl::Status StreamReactor::Submit(Taken& taken, Pending& pending, bool alone) {
  auto prepared = PrepareItem(taken.item, taken.sequence, context_);
  if (!prepared.ok()) return prepared.status();
  const absl::Status status = Admit(prepared->bytes, alone, taken.held);
  if (!status.ok()) return status;
  pending.account.Describe(prepared->request);
  pending.tokens = prepared->request.chunk_tokens();
  auto job = std::make_shared<ComputeJob>(
      std::move(prepared->request), cancelled_,
      [self = shared_from_this(), pending](ComputeJob::End result) {
        const absl::Status ended =
            Guarded([&] { self->Work(self->End(pending, std::move(result))); });
        if (!ended.ok()) self->Abandon(ended);
      });
  job->held = std::move(taken.held);
  job->deadline = deadline_;
  job->peer = peer_;
  job->patient = true;
  PlanJob(context_, *job);
  return context_.queue.Submit(std::move(job));
}

std::optional<StreamReactor::Taken> StreamReactor::End(Pending pending, ComputeJob::End result) {
  absl::Status status = result.response.status();
  grpc::ByteBuffer response;
  if (status.ok()) {
    status = Guarded([&] { response = ToStreamResponse(pending.id, *std::move(result.response)); });
  }
  const bool computed = status.ok();
  StreamSequence* const sequence = pending.sequence.get();
  if (computed) {
    pending.account.SetQueued(result.queued);
    if (sequence != nullptr) sequence->Keep(pending.tokens);
  } else {
    response = ToStreamError(pending.id, sequence ? sequence->WithPosition(status) : status,
                             RetryAfter(status, context_));
  }
  result.held.memory.Change(static_cast<int64_t>(response.Length()), HeldFor::kAnswer);
  std::optional<Taken> next;
  {
    absl::MutexLock lock(&mutex_);
    GiveBack(pending, computed);
    if (!lost_) {
      responses_.push_back({response, std::move(result.held)});
      next = Resume();
      Advance();
    }
  }
  pending.account.Report(status, context_);
  return next;
}

void StreamReactor::OnWriteDone(bool ok) {
  Held held;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    send_limit_.Reset();
    held = std::move(responses_.front().held);
    responses_.pop_front();
    --in_flight_;
    if (!ok) Lose();
    Advance();
  }
  held = {};  // what is held back may wait for it
  const absl::Status status = Guarded([&] {
    std::optional<Taken> next;
    {
      absl::MutexLock lock(&mutex_);
      next = Resume();
    }
    Work(std::move(next));
  });
  if (!status.ok()) Abandon(status);
}

void StreamReactor::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    Lose();
    Advance();
  }
  // What fails here is failed by the next instance that looks for work.
  Guarded([&] { context_.queue.FailExpired(); }).IgnoreError();
}

void StreamReactor::Lose() {
  if (lost_) return;
  lost_ = true;
  input_ended_ = true;
  end_ = Guarded([&] { return LostCallerError(call_, context_); });
  cancelled_->store(true, std::memory_order_relaxed);
}

void StreamReactor::Advance() {
  if (finished_) return;
  if (!writing_ && !responses_.empty() && !lost_) {
    writing_ = true;
    LimitSending();
    StartWrite(&responses_.front().message);
  }
  if (ReadsOn()) {
    reading_ = true;
    awaited_->Begin(permit_.amount());
    StartRead(&message_);
  }
  LimitIdleness();
  if (!input_ended_ || writing_ || (in_flight_ > 0 && !lost_)) return;
  finished_ = true;
  LimitSending();
  if (end_.ok()) return Finish(grpc::Status::OK);
  FinishWith(end_, context_, call_, *this);
}

bool StreamReactor::ReadsOn() const {
  if (reading_ || working_ || held_back_ || input_ended_) return false;
  if (in_flight_ >= context_.limits.stream_window) return false;
  return in_flight_ < 2 || context_.queue.TakesMoreOf(peer_);
}

void StreamReactor::LimitSending() {
  send_limit_.Set(TimeLimit::In(context_.limits.send_timeout), weak_from_this(),
                  [sends = ++sends_](StreamReactor& self) { self.OnSendTimeout(sends); });
}

// Cancelling is all that gRPC lets one do to a write that makes no progress.
void StreamReactor::OnSendTimeout(uint64_t sends) {
  absl::MutexLock lock(&mutex_);
  if (done_ || lost_ || sends != sends_ || !send_limit_.set()) return;
  context_.metrics.CountUnsentAnswer();
  call_.TryCancel();
}

void StreamReactor::LimitIdleness() {
  if (input_ended_ || !reading_ || in_flight_ > 0) return idle_limit_.Reset();
  if (idle_limit_.set()) return;
  idle_limit_.Set(TimeLimit::In(context_.limits.stream_idle_timeout), weak_from_this(),
                  [items = items_](StreamReactor& self) {
                    const absl::Status status = Guarded([&] { self.OnIdle(items); });
                    if (!status.ok()) self.Abandon(status);
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
  Budget::Hold place, permit;
  std::shared_ptr<StreamReactor> self;
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences;
  std::list<Answer> responses;
  std::optional<Taken> held_back;
  absl::Status end;
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    awaited_.reset();
    send_limit_.Reset();
    responses.swap(responses_);
    sequences.swap(sequences_);
    held_back.swap(held_back_);
    end = end_;
    // Jobs that have just ended may still hold them.
    for (const auto& [number, sequence] : sequences) {
      if (sequence != nullptr) sequence->Release();
    }
    place = std::move(place_);
    permit = std::move(permit_);
    self = std::move(self_);
  }
  if (!held_back) return;
  // An item that cannot be counted fails nothing.
  Guarded([&] { account_.ForItem(held_back->item.arrived).Report(end, context_); }).IgnoreError();
}

}  // namespace attendant::server
