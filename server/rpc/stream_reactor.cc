#include "server/rpc/stream_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/rpc/calls.h"

namespace attendant::server {

StreamReactor::StreamReactor(CallArgs entry)
    : Call(std::move(entry)),
      recent_(entry.recent),
      deadline_(DeadlineOf(call_, context_.clock)),
      item_account_(*std::exchange(account_, std::nullopt)),
      permit_(std::move(memory_)) {}

absl::Status StreamReactor::Begin() {
  receiver_.emplace(connection_, Receiving());
  receiver_->SetAllowance(permit_.amount());
  absl::MutexLock lock(&mutex_);
  Advance();
  return absl::OkStatus();
}

void StreamReactor::GiveUp(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  EndInput(status);
}

void StreamReactor::EndInput(const absl::Status& status) {
  if (!input_ended_) end_ = status;
  input_ended_ = true;
  Advance();
}

absl::Status StreamReactor::OnNoMessage() {
  if (call_.IsCancelled()) Lose(LostCallerError(call_, context_));
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  EndInput(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status StreamReactor::OnMessage(grpc::ByteBuffer message, Budget::Reservation) {
  {
    absl::MutexLock lock(&mutex_);
    ++in_flight_;
    LimitIdleness();
  }
  receiver_->TakeOver(static_cast<int64_t>(message.Length()), permit_);
  const absl::Time started = context_.clock.Now();
  absl::StatusOr<StreamItem> item = ReceiveItem(message, context_);
  message.Clear();
  if (!item.ok()) {
    RefuseMalformed(item.status());
    return absl::OkStatus();
  }
  recent_.Report(item->bytes);
  // For this one while it waits, and for the next. A permit that finds no more room stays as it is,
  // and an item beyond it is charged at once.
  permit_.Change(std::min(recent_.bytes(), context_.limits.max_request_bytes), HeldFor::kReceiving);
  receiver_->SetAllowance(permit_.amount());
  const int64_t tokenizing_bytes = TokenizingBytes(*item, context_);
  Taken arrived = {*std::move(item), started, tokenizing_bytes};
  arrived.may_wait = arrived.item.bytes <= permit_.amount();
  absl::Status charged = context_.admission.TakeSlotIfFree(peer_, arrived.held.slot);
  if (charged.ok() && !arrived.may_wait) {
    charged = context_.admission.Charge({peer_, arrived.item.bytes, HeldFor::kRequest},
                                        arrived.held.memory);
  }
  const uint64_t id = arrived.item.request.id();
  std::optional<Taken> taken;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (charged.ok()) taken = Take(std::move(arrived));
    Advance();
  }
  if (!charged.ok()) {
    taken = Respond({id, false, nullptr, item_account_.ForItem(started)}, {charged});
  }
  Work(std::move(taken));
  return absl::OkStatus();
}

absl::Status StreamReactor::Admit(int64_t bytes, bool alone, Held& held) {
  Admission& admission = context_.admission;
  if (held.slot.empty() && !alone) {
    RETURN_IF_ERROR(admission.TakeSlot(peer_, held.slot));
  }
  return admission.Charge({peer_, bytes, HeldFor::kRequest}, held.memory);
}

void StreamReactor::RefuseMalformed(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    --in_flight_;
    EndInput(status);
  }
  item_account_.ForItem(context_.clock.Now()).Report(status, context_);
}

std::optional<StreamReactor::Taken> StreamReactor::Take(Taken&& taken) {
  const uint64_t number = taken.item.request.sequence();
  working_ = true;
  if (number == 0) return std::optional(std::move(taken));
  const auto [entry, is_new] = sequences_.try_emplace(number);
  std::shared_ptr<StreamSequence> sequence = std::exchange(entry->second, nullptr);
  if (is_new) sequence = std::make_shared<StreamSequence>(number);
  if (sequence == nullptr) {
    working_ = false;
    held_back_ = std::move(taken);
    return std::nullopt;
  }
  taken.sequence = std::move(sequence);
  return std::optional(std::move(taken));
}

void StreamReactor::GiveBack(const Pending& pending, bool over) {
  if (pending.sequence == nullptr) return;
  if (over) {
    sequences_.erase(pending.sequence->number());
  } else {
    sequences_[pending.sequence->number()] = pending.sequence;
  }
}

bool StreamReactor::EndSequence(const Pending& pending, bool ends) {
  StreamSequence* const sequence = pending.sequence.get();
  if (sequence == nullptr) return false;
  const bool over = !sequence->begun() || ends;
  if (over || !sequence->model().ok()) sequence->Release();
  return over;
}

void StreamReactor::Work(std::optional<Taken> next, bool on_worker) {
  while (next) {
    if (next->tokenizing_bytes > 0 && !on_worker) {
      context_.workers.Run([this, self = shared_from_this(), next = std::move(next)]() mutable {
        React([&] { Work(std::move(next), /*on_worker=*/true); });
      });
      return;
    }
    Pending pending{next->item.request.id(), next->item.request.ends(), next->sequence,
                    item_account_.ForItem(next->arrived)};
    const bool alone = IsAlone();
    // An item that fails is answered, and the stream goes on.
    const absl::Status status = Guarded([&] { return Submit(*next, pending, alone); });
    if (status.ok()) return LetGo();
    next->held = {};  // before the caller asks for it again
    if (absl::IsResourceExhausted(status) && !alone && next->may_wait) {
      next = HoldBack(*std::move(next), pending);
    } else {
      LetGo();
      next = Respond(std::move(pending), {status});
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
  const bool over = EndSequence(pending, /*ends=*/false);
  absl::MutexLock lock(&mutex_);
  GiveBack(pending, over);
  taken.sequence = nullptr;
  // The other items may have ended meanwhile.
  if (in_flight_ == 1 || lost_) return Take(std::move(taken));
  working_ = false;
  held_back_ = std::move(taken);
  return std::nullopt;
}

std::optional<StreamReactor::Taken> StreamReactor::Resume() {
  if (lost_) return std::nullopt;
  std::optional<Taken> taken = std::exchange(held_back_, std::nullopt);
  return taken ? Take(*std::move(taken)) : std::nullopt;
}

absl::Status StreamReactor::Submit(Taken& taken, Pending& pending, bool alone) {
  if (taken.tokenizing_bytes > 0) {
    RETURN_IF_ERROR(Admit(taken.item.bytes + taken.tokenizing_bytes, alone, taken.held));
  }
  ASSIGN_OR_RETURN(auto prepared, PrepareItem(taken.item, peer_, taken.sequence, context_));
  RETURN_IF_ERROR(Admit(prepared.bytes, alone, taken.held));
  pending.account.Describe(prepared.request);
  pending.tokens = prepared.request.chunk_tokens();
  JobTerms terms = {peer_, deadline_, /*patient=*/true, cancelled_, std::move(taken.held)};
  return SubmitJob(context_, std::move(prepared.request), std::move(terms),
                   [this, self = shared_from_this(), pending](ComputeJob::End result) {
                     React([&] { Work(Respond(pending, std::move(result))); });
                   });
}

std::optional<StreamReactor::Taken> StreamReactor::Respond(Pending pending,
                                                           ComputeJob::End result) {
  const absl::Status status = result.response.status();
  const StreamSequence* const sequence = pending.sequence.get();
  Answer answer = {{}, std::move(result.held)};
  if (status.ok()) {
    answer.message = ToStreamResponse(pending.id, *std::move(result.response));
    pending.account.SetQueued(result.queued);
    if (sequence != nullptr) pending.sequence->Keep(pending.tokens);
  } else {
    answer.message = ToStreamError(pending.id, sequence ? sequence->WithPosition(status) : status,
                                   RetryAfter(status, context_));
  }
  answer.held.memory.Change(static_cast<int64_t>(answer.message.Length()), HeldFor::kAnswer);
  // First, so that a client that has the response finds the memory free.
  const bool over = EndSequence(
      pending, pending.ends && (status.ok() || (sequence != nullptr && !sequence->model().ok())));
  std::optional<Taken> next;
  {
    absl::MutexLock lock(&mutex_);
    GiveBack(pending, over);
    if (!lost_) {
      responses_.push_back(std::move(answer));
      next = Resume();
      Advance();
    }
  }
  pending.account.Report(status, context_);
  return next;
}

absl::Status StreamReactor::OnWritten(bool ok) {
  Held held;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    held = std::move(responses_.front().held);
    responses_.pop_front();
    --in_flight_;
    if (ok) Advance();
  }
  if (!ok) Lose(LostCallerError(call_, context_));
  held = {};  // held-back items may wait for it
  std::optional<Taken> next;
  {
    absl::MutexLock lock(&mutex_);
    next = Resume();
  }
  Work(std::move(next));
  return absl::OkStatus();
}

void StreamReactor::OnLost() {
  Lose(LostCallerError(call_, context_));
  context_.queue.FailExpired();
}

void StreamReactor::Lose(const absl::Status& status) noexcept {
  cancelled_->store(true, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  if (!lost_) {
    lost_ = true;
    input_ended_ = true;
    end_ = status;
  }
  Advance();
}

void StreamReactor::Advance() {
  if (ended_) return;
  if (ReadsOn()) {
    reading_ = true;
    StartRead(&message_);
  }
  LimitIdleness();
  if (!writing_ && !responses_.empty() && !lost_) {
    LimitSending();
    writing_ = true;
    StartWrite(&responses_.front().message);
  }
  if (!input_ended_ || writing_ || (in_flight_ > 0 && !lost_)) return;
  Finish(end_);
}

bool StreamReactor::ReadsOn() const {
  if (reading_ || working_ || held_back_ || input_ended_) return false;
  if (in_flight_ >= context_.limits.stream_window) return false;
  return in_flight_ < 2 || context_.queue.TakesMoreOf(peer_);
}

void StreamReactor::LimitIdleness() {
  const bool idle = reading_ && !input_ended_ && in_flight_ == 0;
  if (idle == idle_) return;
  if (idle) {
    Limit(RealClock().Now() + context_.limits.stream_idle_timeout,
          static_cast<Expired>(&StreamReactor::OnIdle));
  } else {
    Unlimit();
  }
  idle_ = idle;
}

absl::Status StreamReactor::OnIdle() {
  EndInput(absl::DeadlineExceededError(absl::StrCat(
      "the stream's next item did not arrive within ",
      absl::FormatDuration(context_.limits.stream_idle_timeout), " (--stream-idle-timeout)")));
  return absl::OkStatus();
}

void StreamReactor::OnEnd() {
  receiver_.reset();
  Budget::Reservation permit;
  std::map<uint64_t, std::shared_ptr<StreamSequence>> sequences;
  std::deque<Answer> responses;
  std::optional<Taken> held_back;
  absl::Status end;
  {
    absl::MutexLock lock(&mutex_);
    permit = std::move(permit_);
    responses.swap(responses_);
    sequences.swap(sequences_);
    held_back.swap(held_back_);
    end = end_;
  }
  // Jobs that have just ended may still hold them.
  for (const auto& [number, sequence] : sequences) {
    if (sequence != nullptr) sequence->Release();
  }
  if (held_back) item_account_.ForItem(held_back->arrived).Report(end, context_);
}

std::shared_ptr<Call> NewStreamCall(CallArgs entry) {
  return std::make_shared<StreamReactor>(std::move(entry));
}

}  // namespace attendant::server
