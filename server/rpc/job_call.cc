#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "server/execution/compute_job.h"
#include "server/execution/prepare_request.h"
#include "server/inference/infer.h"
#include "server/rpc/calls.h"

namespace attendant::server {
namespace {

// Permit -> message -> job -> response.
//
// The request's memory is held without a gap: by the permit while the body is received
// (call/message_receipt.h), by the job until it has ended, and by the call until the answer has left.
//
// The permit and the end of the job come on threads of their own. The job holds the call until it
// has ended; a permit that comes late finds it ended or gone.
template <auto Prepare>
class JobCall final : public Call {
 public:
  explicit JobCall(CallEntry entry) : Call(std::move(entry)), recent_(entry.recent) {}

 private:
  absl::Status Begin() override;
  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Hold memory) override;
  void OnLost() override;

  RecentSize& recent_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Budget::Pending> pending_permit_;
};

template <auto Prepare>
absl::Status JobCall<Prepare>::Begin() {
  Budget& memory = context_.admission.memory();
  // Twice the largest body holds any request whose answer is of its size.
  const int64_t most = std::min(2 * context_.limits.max_request_bytes, memory.total());
  int64_t amount = std::min(recent_.bytes(), most);
  // What others send is no measure for a caller that has nothing yet, who need not wait for more.
  if (memory.held_by(peer_) == 0) amount = std::min(amount, RecentSize::kLeast);
  pending_permit_ = memory.Await({peer_, amount, HeldFor::kReceiving},
                                 [this, weak = weak_from_this()](Budget::Hold permit) {
                                   if (const auto self = weak.lock())
                                     React([&] { ReceiveBody(std::move(permit)); });
                                 });
  return absl::OkStatus();
}

template <auto Prepare>
absl::Status JobCall<Prepare>::OnMessage(grpc::ByteBuffer message,
                                                      Budget::Hold memory) {
  auto prepared = Prepare(message, context_);
  message.Clear();  // what is needed of it, the request holds
  if (!prepared.ok()) return prepared.status();
  recent_.Report(prepared->bytes);
  absl::Status status =
      context_.admission.Charge({peer_, prepared->bytes, HeldFor::kRequest}, memory);
  if (!status.ok()) return status;
  auto end = [this, self = shared_from_this(),
              to_message = std::move(prepared->to_message)](ComputeJob::End result) {
    React([&]() -> absl::Status {
      Budget::Hold held = std::move(result.held.memory);
      if (!result.response.ok()) return result.response.status();
      CallEnd answer = {absl::OkStatus(), to_message(*std::move(result.response))};
      held.Change(static_cast<int64_t>(answer.response.Length()), HeldFor::kAnswer);
      answer.memory = std::move(held);
      answer.queued = result.queued;
      End(std::move(answer));
      return absl::OkStatus();
    });
  };
  auto job =
      std::make_shared<ComputeJob>(std::move(prepared->request), cancelled_, std::move(end));
  job->held.memory = std::move(memory);
  job->deadline = std::min(DeadlineOf(call_, context_.clock), started_ + prepared->timeout);
  job->peer = peer_;
  PlanJob(context_, *job);
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return absl::OkStatus();
    account_->Describe(job->request());
  }
  return context_.queue.Submit(std::move(job));
}

template <auto Prepare>
void JobCall<Prepare>::OnLost() {
  cancelled_->store(true, std::memory_order_relaxed);
  Call::OnLost();
  context_.queue.FailExpired();
}

}  // namespace

std::shared_ptr<Call> NewAttendCall(CallEntry entry) {
  return std::make_shared<JobCall<PrepareAttend>>(std::move(entry));
}
std::shared_ptr<Call> NewEncodeCall(CallEntry entry) {
  return std::make_shared<JobCall<PrepareEncode>>(std::move(entry));
}
std::shared_ptr<Call> NewPutMemoryCall(CallEntry entry) {
  return std::make_shared<JobCall<PreparePutMemory>>(std::move(entry));
}
std::shared_ptr<Call> NewModelInferCall(CallEntry entry) {
  return std::make_shared<JobCall<PrepareInfer>>(std::move(entry));
}

}  // namespace attendant::server
