#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "server/execution/compute_job.h"
#include "server/rpc/calls.h"

namespace attendant::server {
namespace {

// Permit -> message -> job -> response. Texts are tokenized on a worker, before the job or, if only
// tokens are requested, instead of it.
//
// The request's memory is held without a gap: by the permit while the body is received
// (call/message_receiver.h), by the job until it has ended, and by the call until the response is
// sent.
//
// The permit, the worker and the completed job run on other threads. The worker and the job keep
// the call alive until they end; a late permit finds it ended or destroyed.
class JobCall final : public Call {
 public:
  JobCall(CallArgs entry, PrepareJob prepare)
      : Call(std::move(entry)), prepare_(prepare), recent_(entry.recent) {}

 private:
  absl::Status Begin() override {
    Budget& memory = context_.admission.memory();
    // Twice the largest body is enough for any request with a response of its size.
    int64_t amount = std::min(2 * context_.limits.max_request_bytes, recent_.bytes());
    // The size of other clients' requests does not matter to a client that holds nothing yet, and
    // need not make it wait.
    if (memory.held_by(peer_) == 0) amount = std::min(amount, RecentSize::kLeast);
    while (pending_permit_ == nullptr) {  // again if the budget has become smaller meanwhile
      amount = std::min(amount, memory.total());
      pending_permit_ = memory.Await({peer_, amount, HeldFor::kReceiving},
                                     [this, weak = weak_from_this()](Budget::Reservation permit) {
                                       if (const auto self = weak.lock())
                                         React([&] { Receive(std::move(permit)); });
                                     });
    }
    return absl::OkStatus();
  }

  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation memory) override {
    ASSIGN_OR_RETURN(Preparation preparation, prepare_(message, context_));
    const absl::Time deadline = DeadlineOf(call_, context_.clock);
    const auto bytes = static_cast<int64_t>(message.Length());
    message.Clear();  // the preparation keeps what it needs
    if (preparation.tokenizing_bytes == 0) {
      return Proceed(preparation.prepare(peer_), std::move(memory), deadline);
    }
    RETURN_IF_ERROR(context_.admission.Charge(
        {peer_, bytes + preparation.tokenizing_bytes, HeldFor::kRequest}, memory));
    context_.workers.Run([this, self = shared_from_this(), deadline,
                          preparation = std::move(preparation),
                          memory = std::move(memory)]() mutable {
      React([&]() -> absl::Status {
        RETURN_IF_ERROR(CheckAwaited(deadline));
        return Proceed(preparation.prepare(peer_), std::move(memory), deadline);
      });
    });
    return absl::OkStatus();
  }

  void OnLost() override {
    cancelled_->store(true, std::memory_order_relaxed);
    Call::OnLost();
    context_.queue.FailExpired();
  }

  // Continues with a request or a response, until the client's deadline.
  absl::Status Proceed(absl::StatusOr<Prepared> prepared, Budget::Reservation memory,
                       absl::Time deadline) {
    if (!prepared.ok()) return prepared.status();
    if (auto* compute = std::get_if<PreparedCompute>(&*prepared)) {
      return Submit(std::move(*compute), std::move(memory), deadline);
    }
    Respond(std::get<grpc::ByteBuffer>(*std::move(prepared)), std::move(memory));
    return absl::OkStatus();
  }

  absl::Status Submit(PreparedCompute prepared, Budget::Reservation memory, absl::Time deadline) {
    recent_.Report(prepared.bytes);
    RETURN_IF_ERROR(context_.admission.Charge({peer_, prepared.bytes, HeldFor::kRequest}, memory));
    auto end = [this, self = shared_from_this(),
                to_message = std::move(prepared.to_message)](ComputeJob::End result) {
      React([&]() -> absl::Status {
        Budget::Reservation held = std::move(result.held.memory);
        if (!result.response.ok()) return result.response.status();
        Respond(to_message(*std::move(result.response)), std::move(held), result.queued);
        return absl::OkStatus();
      });
    };
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return absl::OkStatus();
      account_->Describe(prepared.request);
    }
    JobTerms terms = {peer_, std::min(deadline, started_ + prepared.timeout)};
    terms.cancelled = cancelled_;
    terms.held.memory = std::move(memory);
    return SubmitJob(context_, std::move(prepared.request), std::move(terms), std::move(end));
  }

  void Respond(grpc::ByteBuffer response, Budget::Reservation memory,
               std::optional<absl::Duration> queued = {}) {
    memory.Change(static_cast<int64_t>(response.Length()), HeldFor::kAnswer);
    End({absl::OkStatus(), std::move(response), std::move(memory), queued});
  }

  absl::Status CheckAwaited(absl::Time deadline) const {
    if (cancelled_->load(std::memory_order_relaxed)) {
      return absl::CancelledError("the client has disconnected");
    }
    return context_.clock.Now() < deadline
               ? absl::OkStatus()
               : absl::DeadlineExceededError("the deadline passed before the texts were tokenized");
  }

  const PrepareJob prepare_;
  RecentSize& recent_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Budget::Pending> pending_permit_;
};

}  // namespace

std::shared_ptr<Call> NewJobCall(CallArgs entry, PrepareJob prepare) {
  return std::make_shared<JobCall>(std::move(entry), prepare);
}

}  // namespace attendant::server
