#include "server/execution/compute_job.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "server/base/fault.h"
#include "server/execution/cached_vectors.h"
#include "server/request/request_slice.h"

namespace attendant::server {
namespace {

// Kept tokens that are gathered for a sequence; at least one, as also a masked one takes some work.
int64_t TokensOf(const ComputeRequest& request, int64_t sequence) {
  if (request.registration()) return std::max<int64_t>(1, request.tokens());
  int64_t tokens = request.layout.length(sequence);
  if (const CrossKvRows* rows = request.cross_kv_rows()) {
    // The rows that all sequences share are counted with the first one.
    const bool shared = rows->layout.sequences == 1;
    if (sequence == 0 || !shared) {
      tokens += rows->layout.length(shared ? 0 : sequence) * (rows->values ? 2 : 1);
    }
  }
  return std::max<int64_t>(1, tokens);
}

using Done = std::function<void(ComputeJob::End)>;

// Reduces the request to the sequences missing from the cache and makes `done` receive the response
// for all of them. If there is no memory for both responses at once, computes everything instead.
void LeaveMissing(std::shared_ptr<CachedVectors> cached, ComputeRequest& request, Held& held,
                  Done& done) {
  if (std::ssize(cached->missing()) < request.sequences()) {
    ComputeRequest rest = SequencesAt(request, cached->missing());
    const auto bytes = PredictResponseBytes(rest, std::numeric_limits<int64_t>::max());
    if (!bytes.ok() || held.memory.Change(held.memory.amount() + *bytes, HeldFor::kRequest) !=
                           Budget::Answer::kTaken) {
      return;
    }
    request = std::move(rest);
  }
  done = [cached = std::move(cached), done = std::move(done)](ComputeJob::End end) {
    if (end.response.ok()) {
      absl::StatusOr<Response> computed = std::move(end.response);
      const absl::Status status =
          Guarded([&] { end.response = cached->Complete(*std::move(computed)); });
      if (!status.ok()) end.response = status;
    }
    done(std::move(end));
  };
}

bool Fits(const JobSlice& sequence, const JobSlice& slice, const ServiceLimits& limits) {
  return slice.seconds + sequence.seconds <= absl::ToDoubleSeconds(limits.max_batch_seconds) &&
         slice.tokens + sequence.tokens <= limits.max_batch_tokens;
}

}  // namespace

ComputeJob::ComputeJob(ComputeRequest request,
                       std::shared_ptr<const std::atomic<bool>> job_cancelled,
                       std::function<void(End)> done)
    : model(request.span.model),
      request_(std::move(request)),
      done_(std::move(done)),
      left_(request_->sequences()) {
  key = request_->key();
  tokens = request_->tokens();
  cancelled = std::move(job_cancelled);
  response_.outputs = request_->output_tensors();
  response_.texts = request_->texts;
  response_.describes_texts = request_->outputs.tokens;
}

bool ComputeJob::BeginSlice() {
  absl::MutexLock lock(&mutex_);
  if (ended_ || !status_.ok()) return false;
  ++running_;
  return true;
}

void ComputeJob::EndSlice(int64_t sequences, absl::Duration queued, const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    --running_;
    left_ -= sequences;
    queued_ = std::min(queued_, queued);
    Note(status);
    if (!Over()) return;
  }
  EndNow();
}

void ComputeJob::Fail(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    Note(status);
    if (!Over()) return;
  }
  EndNow();
}

void ComputeJob::Note(const absl::Status& status) {
  status_.Update(status);
  if (!status_.ok()) failed = true;
}

bool ComputeJob::Over() {
  if (ended_ || running_ > 0 || (left_ > 0 && status_.ok())) return false;
  ended_ = true;
  return true;
}

// No other thread uses the job any more.
void ComputeJob::EndNow() {
  request_.reset();
  End end = status_.ok() ? End{std::move(response_), queued_} : End{status_};
  end.held = std::move(held);
  std::exchange(done_, nullptr)(std::move(end));
}

absl::Status SubmitJob(const ServiceContext& context, ComputeRequest request, JobTerms terms,
                       std::function<void(ComputeJob::End)> done) {
  std::shared_ptr<CachedVectors> cached;
  if (context.cache != nullptr) cached = CachedVectors::Find(request, *context.cache);
  if (cached != nullptr && cached->missing().empty()) {
    ASSIGN_OR_RETURN(Response response, cached->Answer(request));
    request = {};  // as the end of a job does
    done({std::move(response), absl::ZeroDuration(), std::move(terms.held)});
    return absl::OkStatus();
  }
  if (cached != nullptr) LeaveMissing(std::move(cached), request, terms.held, done);
  auto job =
      std::make_shared<ComputeJob>(std::move(request), std::move(terms.cancelled), std::move(done));
  job->held = std::move(terms.held);
  job->deadline = terms.deadline;
  job->peer = std::move(terms.peer);
  job->patient = terms.patient;
  PlanJob(context, *job);
  return context.queue.Submit(std::move(job));
}

void PlanJob(const ServiceContext& context, ComputeJob& job) {
  const ComputeRequest& request = job.request();
  const absl::Time now = context.clock.Now();
  const SpanCost cost = job.model->cost->Predict(request.range());
  const double correction = job.model->cost->correction(now);
  job.overhead = cost.per_batch * correction;
  const bool divisible = CanBeSliced(request);
  job.slices.clear();
  for (int64_t b = 0; b < request.sequences(); ++b) {
    const JobSlice sequence = {1, TokensOf(request, b),
                               request.PredictSeconds(b, cost) * correction};
    if (job.slices.empty() || (divisible && !Fits(sequence, job.slices.back(), context.limits))) {
      job.slices.push_back(sequence);
      continue;
    }
    JobSlice& slice = job.slices.back();
    slice.sequences += 1;
    slice.tokens += sequence.tokens;
    slice.seconds += sequence.seconds;
  }
}

}  // namespace attendant::server
