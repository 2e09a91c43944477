#include "server/rpc/unary_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

grpc::ServerGenericBidiReactor* UnaryReactor::Start(const UnaryMethod& method, CallEntry entry) {
  std::shared_ptr<UnaryReactor> reactor(new UnaryReactor(method, std::move(entry)));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  reactor->AskForPermit();
  return reactor.get();
}

UnaryReactor::UnaryReactor(const UnaryMethod& method, CallEntry entry)
    : context_(entry.context),
      method_(method),
      recent_(entry.recent),
      call_(entry.call),
      peer_(std::move(entry.peer)),
      started_(context_.clock.Now()),
      slot_(std::move(entry.place)),
      account_(method.name) {}

void UnaryReactor::AskForPermit() {
  Budget& memory = context_.admission.memory();
  // Twice the largest body holds any request whose answer is of its size.
  const int64_t most = std::min(2 * context_.limits.max_request_bytes, memory.total());
  std::unique_ptr<Budget::Pending> pending_permit =
      memory.Await({peer_, std::min(recent_.bytes(), most), HeldFor::kReceiving},
                   [weak = weak_from_this()](Budget::Hold permit) {
                     if (const auto self = weak.lock()) self->OnPermit(std::move(permit));
                   });
  absl::MutexLock lock(&mutex_);
  pending_permit_ = std::move(pending_permit);
}

void UnaryReactor::OnPermit(Budget::Hold permit) {
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kAwaitingPermit) return;
  phase_ = Phase::kReceiving;
  memory_ = std::move(permit);
  receiving_since_ = std::chrono::system_clock::now();
  LimitReceiving();
  StartRead(&message_);
}

void UnaryReactor::LimitReceiving() {
  const int64_t bytes = std::min(memory_.amount(), context_.limits.max_request_bytes);
  const absl::Duration limit = context_.limits.receive_timeout +
                               absl::Seconds(static_cast<double>(bytes) /
                                             static_cast<double>(context_.limits.min_receive_rate));
  time_limit_.emplace();
  time_limit_->Set(receiving_since_ + absl::ToChronoNanoseconds(limit),
                   [weak = weak_from_this()](bool expired) {
                     if (!expired) return;
                     if (const auto self = weak.lock()) self->OnReceiveTimeout();
                   });
}

void UnaryReactor::OnReceiveTimeout() {
  Budget::Hold permit;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kReceiving) return;
    permit = std::move(memory_);
  }
  const int64_t most = context_.limits.max_request_bytes;
  absl::Status status;
  if (permit.amount() >= most) {
    status = absl::DeadlineExceededError(absl::StrCat(
        "the request's body did not arrive within ",
        absl::FormatDuration(context_.limits.receive_timeout), " and a second for each ",
        context_.limits.min_receive_rate, " bytes (--min-receive-rate)"));
  } else {
    const int64_t more = std::min(2 * permit.amount(), most);
    status = context_.admission.Charge({peer_, more, HeldFor::kReceiving}, permit);
  }
  if (!status.ok()) return End({.status = status, .only_in = Phase::kReceiving});
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kReceiving) return;
  memory_ = std::move(permit);
  LimitReceiving();
}

void UnaryReactor::OnReadDone(bool ok) {
  if (!ok) return End({.status = ReadError(), .only_in = Phase::kReceiving});
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kReceiving) return;
    phase_ = Phase::kComputing;
    time_limit_.reset();
  }
  (this->*method_.submit)();
}

absl::Status UnaryReactor::ReadError() const {
  if (context_.admission.closed()) return DrainingError();
  if (call_.IsCancelled()) return LostCallerError(call_, context_);
  return absl::InvalidArgumentError("the call ended without a request message");
}

template <typename JobOfMethod, auto Prepare, auto Respond>
void UnaryReactor::Submit() {
  auto prepared = Prepare(message_, context_);
  message_.Clear();  // what is needed of it, the request holds
  if (!prepared.ok()) return End({prepared.status()});
  recent_.Report(prepared->bytes);
  Budget::Hold memory;
  {
    absl::MutexLock lock(&mutex_);
    memory = std::move(memory_);
  }
  absl::Status status =
      context_.admission.Charge({peer_, prepared->bytes, HeldFor::kRequest}, memory);
  if (!status.ok()) {
    prepared = status;  // drops the request, before the caller asks for it again
    return End({status});
  }
  auto end = [self = shared_from_this()](typename JobOfMethod::End result) {
    if (!result.response.ok()) return self->End({result.response.status()});
    Ending ending = {.status = absl::OkStatus(),
                     .response = Respond(*std::move(result.response)),
                     .queued = result.queued,
                     .memory = std::move(result.held.memory)};
    ending.memory.Change(static_cast<int64_t>(ending.response.Length()), HeldFor::kAnswer);
    self->End(std::move(ending));
  };
  auto job = std::make_unique<JobOfMethod>(std::move(prepared->request), cancelled_, end);
  job->held.memory = std::move(memory);
  job->deadline = DeadlineOf(call_, context_.clock);
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kFinished) return;
    account_.Describe(job->request());
  }
  std::unique_ptr<Job> queued = std::move(job);
  status = context_.queue.Submit(queued);
  if (status.ok()) return;
  queued.reset();  // with what it holds, before the caller asks for it again
  End({status});
}

absl::Span<const UnaryMethod> UnaryReactor::Methods() {
  static constexpr UnaryMethod kMethods[] = {
      {"Attend", &UnaryReactor::Submit<ComputeJob, PrepareAttend, ToAttendResponse>},
      {"Encode", &UnaryReactor::Submit<ComputeJob, PrepareEncode, ToEncodeResponse>},
      {"PutMemory", &UnaryReactor::Submit<RegistrationJob, PreparePutMemory, ToPutMemoryResponse>},
  };
  return kMethods;
}

const UnaryMethod* UnaryReactor::FindMethod(absl::string_view name) {
  for (const UnaryMethod& method : Methods()) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

void UnaryReactor::OnCancel() {
  cancelled_->store(true, std::memory_order_relaxed);
  End({LostCallerError(call_, context_)});
  context_.queue.FailDead();
}

void UnaryReactor::End(Ending ending) {
  Budget::Hold permit;
  std::optional<RequestAccount> account;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kFinished) return;
    if (ending.only_in && phase_ != *ending.only_in) return;
    phase_ = Phase::kFinished;
    permit = std::move(memory_);
    account = std::move(account_);
  }
  permit.Release();
  if (ending.status.ok()) {
    account->SetQueued(ending.queued);
    context_.admission.ReportAnswered(context_.clock.Now() - started_);
  }
  account->Report(ending.status, context_.metrics);  // without the mutex, as it may log
  absl::MutexLock lock(&mutex_);
  time_limit_.emplace();
  time_limit_->Set(
      std::chrono::system_clock::now() + absl::ToChronoNanoseconds(context_.limits.send_timeout),
      [weak = weak_from_this()](bool expired) {
        if (!expired) return;
        if (const auto self = weak.lock()) self->OnSendTimeout();
      });
  if (!ending.status.ok()) return FinishWith(ending.status, context_, call_, *this);
  memory_ = std::move(ending.memory);
  response_.Swap(&ending.response);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

// Cancelling is all that gRPC lets one do to a write that makes no progress.
void UnaryReactor::OnSendTimeout() {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  context_.metrics.CountUnsentAnswer();
  call_.TryCancel();
}

void UnaryReactor::OnDone() {
  Budget::Hold slot, memory;
  std::shared_ptr<UnaryReactor> self;
  absl::MutexLock lock(&mutex_);
  done_ = true;
  time_limit_.reset();
  response_.Clear();
  slot = std::move(slot_);
  memory = std::move(memory_);
  self = std::move(self_);
}

}  // namespace attendant::server
