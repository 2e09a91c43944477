#include "server/rpc/unary_reactor.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/strip.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/base/clock.h"
#include "server/base/fault.h"
#include "server/inference/infer.h"
#include "server/inference/inference_methods.h"
#include "server/rpc/call/peer.h"
#include "server/rpc/model_methods.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
grpc::ServerGenericBidiReactor* UnaryReactor::Start(const UnaryMethod& method, CallEntry entry) {
  std::shared_ptr<UnaryReactor> reactor(new UnaryReactor(method, std::move(entry)));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  const absl::Status status =
      Guarded([&] { method.quick ? reactor->ReadSmall() : reactor->AskForPermit(); });
  if (!status.ok()) {
    reactor->End({status});
  }
  return reactor.get();
}

UnaryReactor::UnaryReactor(const UnaryMethod& method, CallEntry entry)
    : method_context_(entry.context),
      context_(entry.context.service),
      method_(method),
      recent_(entry.recent),
      call_(entry.call),
      peer_(std::move(entry.peer)),
      started_(context_.clock.Now()),
      slot_(std::move(entry.place)),
      account_(std::move(entry.account)) {}

void UnaryReactor::ReadSmall() {
  auto receipt = std::make_unique<SmallReceipt>(
      context_.admission, peer_, ConnectionOf(call_.peer()),
      [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->End({.status = Guarded(TooManyAwaitedError), .only_in = Phase::kReceiving});
        }
      },
      context_.limits.receive_timeout);
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kAwaitingPermit) return;
  phase_ = Phase::kReceiving;
  small_receipt_ = std::move(receipt);
  LimitReceiving();
  StartRead(&message_);
}

void UnaryReactor::AskForPermit() {
  Budget& memory = context_.admission.memory();
  // Twice the largest body holds any request whose answer is of its size.
  const int64_t most = std::min(2 * context_.limits.max_request_bytes, memory.total());
  int64_t amount = std::min(recent_.bytes(), most);
  // What others send is no measure for a caller that has nothing yet, who need not wait for more.
  if (memory.held_by(peer_) == 0) amount = std::min(amount, RecentSize::kLeast);
  std::unique_ptr<Budget::Pending> pending_permit = memory.Await(
      {peer_, amount, HeldFor::kReceiving}, [weak = weak_from_this()](Budget::Hold permit) {
        if (const auto self = weak.lock()) self->OnPermit(std::move(permit));
      });
  absl::MutexLock lock(&mutex_);
  pending_permit_ = std::move(pending_permit);
}

void UnaryReactor::OnPermit(Budget::Hold permit) {
  const absl::Status status = Guarded([&] {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kAwaitingPermit) return;
    phase_ = Phase::kReceiving;
    const ServiceLimits& limits = context_.limits;
    receipt_ = std::make_unique<BodyReceipt>(
        context_.admission,
        ReceiptLimits{limits.max_request_bytes, limits.receive_timeout, limits.min_receive_rate},
        peer_, ConnectionOf(call_.peer()), std::move(permit), RealClock().Now());
    LimitReceiving();
    StartRead(&message_);
  });
  if (!status.ok()) End({status});
}

void UnaryReactor::LimitReceiving() {
  const absl::Time time =
      small_receipt_ != nullptr ? small_receipt_->next_look() : receipt_->next_look();
  const bool limited = time_limit_.Set(time, weak_from_this(), [](UnaryReactor& self) {
    const absl::Status status = Guarded([&] { self.OnReceiveTimeout(); });
    if (!status.ok()) self.End({status});
  });
  if (!limited) throw std::bad_alloc();  // no body is waited for without a limit
}

void UnaryReactor::OnReceiveTimeout() {
  std::unique_ptr<BodyReceipt> receipt;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kReceiving) return;
    receipt = std::move(receipt_);
    if (receipt == nullptr) status = small_receipt_->Look();
  }
  if (receipt != nullptr) status = receipt->Look(RealClock().Now());
  if (!status.ok()) return End({.status = status, .only_in = Phase::kReceiving});
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kReceiving) return;
  receipt_ = std::move(receipt);
  LimitReceiving();
}

void UnaryReactor::OnReadDone(bool ok) {
  if (!ok) {
    return End({.status = Guarded([&] { return ReadError(); }), .only_in = Phase::kReceiving});
  }
  std::unique_ptr<BodyReceipt> receipt;
  std::unique_ptr<SmallReceipt> small_receipt;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kReceiving) return;
    phase_ = Phase::kComputing;
    time_limit_.Reset();
    receipt = std::move(receipt_);
    small_receipt = std::move(small_receipt_);
  }
  if (small_receipt != nullptr) small_receipt->Finish(static_cast<int64_t>(message_.Length()));
  small_receipt.reset();
  if (receipt != nullptr) {
    Budget::Hold permit = receipt->Finish(static_cast<int64_t>(message_.Length()));
    absl::MutexLock lock(&mutex_);
    memory_ = std::move(permit);
  }
  const absl::Status status =
      Guarded([&] { method_.quick ? Answer() : (this->*method_.submit)(); });
  if (!status.ok()) End({status});
}

absl::Status UnaryReactor::ReadError() const {
  if (context_.admission.closed()) return DrainingError();
  if (call_.IsCancelled()) return LostCallerError(call_, context_);
  return absl::InvalidArgumentError("the call ended without a request message");
}

template <auto Prepare>
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
  auto end = [self = shared_from_this(),
              to_message = std::move(prepared->to_message)](ComputeJob::End result) {
    Ending ending = {.status = result.response.status(),
                     .queued = result.queued,
                     .memory = std::move(result.held.memory)};
    if (ending.status.ok()) {
      ending.status = Guarded([&] { ending.response = to_message(*std::move(result.response)); });
    }
    ending.memory.Change(static_cast<int64_t>(ending.response.Length()), HeldFor::kAnswer);
    self->End(std::move(ending));
  };
  auto job = std::make_shared<ComputeJob>(std::move(prepared->request), cancelled_, end);
  job->held.memory = std::move(memory);
  job->deadline = std::min(DeadlineOf(call_, context_.clock), started_ + prepared->timeout);
  job->peer = peer_;
  PlanJob(context_, *job);
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kFinished) return;
    account_.Describe(job->request());
  }
  // A refused job goes with what it holds, before the caller asks for it again.
  status = context_.queue.Submit(std::move(job));
  if (status.ok()) return;
  End({status});
}

void UnaryReactor::Answer() {
  std::string model;
  absl::StatusOr<grpc::ByteBuffer> response = method_.quick(method_context_, message_, model);
  message_.Clear();
  {
    absl::MutexLock lock(&mutex_);
    account_.SetModel(model);
  }
  if (!response.ok()) return End({response.status()});
  End({.status = absl::OkStatus(), .response = *std::move(response)});
}

absl::Span<const UnaryMethod> UnaryReactor::Methods() {
  static constexpr const char* kEncoder = v1::EncoderService::service_full_name();
  static constexpr const char* kInference = inference::GRPCInferenceService::service_full_name();
  static constexpr UnaryMethod kMethods[] = {
      {kEncoder, "Attend", &UnaryReactor::Submit<PrepareAttend>},
      {kEncoder, "Encode", &UnaryReactor::Submit<PrepareEncode>},
      {kEncoder, "PutMemory", &UnaryReactor::Submit<PreparePutMemory>},
      {kEncoder, "ListModels", nullptr, ListModels},
      {kEncoder, "GetModel", nullptr, GetModel},
      {kEncoder, "GetTokenizer", nullptr, GetTokenizer},
      {kEncoder, "DropMemory", nullptr, DropMemory},
      {kInference, "ModelInfer", &UnaryReactor::Submit<PrepareInfer>},
      {kInference, "ServerLive", nullptr, Quick<ServerLive>},
      {kInference, "ServerReady", nullptr, Quick<ServerReady>},
      {kInference, "ModelReady", nullptr, Quick<ModelReady>},
      {kInference, "ServerMetadata", nullptr, Quick<ServerMetadata>},
      {kInference, "ModelMetadata", nullptr, Quick<ModelMetadata>},
      {kInference, "ModelConfig", nullptr, Quick<ModelConfig>},
      {kInference, "ModelStatistics", nullptr, Quick<ModelStatistics>},
      {kInference, "RepositoryIndex", nullptr, Quick<RepositoryIndex>},
      {kInference, "SystemSharedMemoryStatus", nullptr, Quick<SharedMemoryStatus>},
      {kInference, "SystemSharedMemoryUnregister", nullptr, Quick<SharedMemoryUnregister>},
      {kInference, "CudaSharedMemoryStatus", nullptr, Quick<SharedMemoryStatus>},
      {kInference, "CudaSharedMemoryUnregister", nullptr, Quick<SharedMemoryUnregister>},
  };
  return kMethods;
}

const UnaryMethod* UnaryReactor::FindMethod(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, "/")) return nullptr;
  for (const UnaryMethod& method : Methods()) {
    absl::string_view rest = path;
    if (absl::ConsumePrefix(&rest, method.service) && absl::ConsumePrefix(&rest, "/") &&
        rest == method.name) {
      return &method;
    }
  }
  return nullptr;
}

void UnaryReactor::OnCancel() {
  cancelled_->store(true, std::memory_order_relaxed);
  End({Guarded([&] { return LostCallerError(call_, context_); })});
  // What fails here is failed by the next instance that looks for work.
  Guarded([&] { context_.queue.FailExpired(); }).IgnoreError();
}

void UnaryReactor::End(Ending ending) noexcept {
  Budget::Hold permit;
  std::unique_ptr<BodyReceipt> receipt;
  std::unique_ptr<SmallReceipt> small_receipt;
  std::optional<RequestAccount> account;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kFinished) return;
    if (ending.only_in && phase_ != *ending.only_in) return;
    phase_ = Phase::kFinished;
    permit = std::move(memory_);
    receipt = std::move(receipt_);
    small_receipt = std::move(small_receipt_);
    account = std::move(account_);
  }
  permit.Release();
  receipt.reset();
  small_receipt.reset();
  if (ending.status.ok()) {
    if (!method_.quick) {
      account->SetQueued(ending.queued);
      context_.admission.ReportAnswered(context_.clock.Now() - started_);
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    time_limit_.Set(TimeLimit::In(context_.limits.send_timeout), weak_from_this(),
                    [](UnaryReactor& self) { self.OnSendTimeout(); });
    if (ending.status.ok()) {
      memory_ = std::move(ending.memory);
      response_.Swap(&ending.response);
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      FinishWith(ending.status, context_, call_, *this);
    }
  }
  // Without the mutex, as it may log. The call has its slot until it is counted.
  account->Report(ending.status, context_);
  Budget::Hold slot;
  absl::MutexLock lock(&mutex_);
  reported_ = true;
  if (done_) slot = std::move(slot_);
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
  time_limit_.Reset();
  response_.Clear();
  if (reported_) slot = std::move(slot_);
  memory = std::move(memory_);
  self = std::move(self_);
}

}  // namespace attendant::server
