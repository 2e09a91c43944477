#include "server/execution/batch_executor.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/kernels/gemm/gemm.h"
#include "server/execution/batch_observer.h"

namespace attendant::server {

BatchExecutor::BatchExecutor(const ServiceContext& context, int copy, RowPlans& row_plans)
    : context_(context) {
  const int64_t max_tokens =
      std::max(context.limits.max_batch_tokens, context.limits.max_request_tokens);
  for (const auto& [name, model] : context.models) {
    runs_.emplace(model.get(), EncoderRun(model->copy(copy), max_tokens,
                                          context.thread_plan.threads_per_instance));
  }
  for (const auto& [name, model] : context.models) row_plans.Apply(*model, runs_.at(model.get()));
}

void BatchExecutor::Run(std::vector<std::unique_ptr<Job>> batch) {
  std::vector<BatchJob> jobs;
  jobs.reserve(batch.size());
  for (std::unique_ptr<Job>& job : batch) {
    jobs.emplace_back(std::unique_ptr<EncodeJob>(static_cast<EncodeJob*>(job.release())));
  }
  try {
    Compute(jobs);
  } catch (const std::bad_alloc&) {
    for (BatchJob& job : jobs) {
      if (job.open()) job.Fail(absl::ResourceExhaustedError("no memory for the request's buffers"));
    }
  }
}

void BatchExecutor::Compute(std::vector<BatchJob>& batch) {
  EncoderRun& run = runs_.at(batch.front().request().span.model.get());
  Times times;
  times.started = context_.clock.Now();
  const Jobs jobs = Gather(batch, run);
  if (jobs.empty()) return;
  times.gathered = context_.clock.Now();
  absl::StatusOr<MatrixView<const float>> result = RunEngine(jobs, run);
  if (!result.ok()) return FailAll(jobs, result.status());
  times.computed = context_.clock.Now();
  Respond(jobs, *result, times, run);
}

BatchExecutor::Jobs BatchExecutor::Gather(std::vector<BatchJob>& batch, EncoderRun& run) {
  Jobs jobs;
  int64_t rows = 0;
  cross_kv_rows_ = PlaceCrossKv(batch);
  for (BatchJob& job : batch) {
    absl::Status status = CheckAwaited(job.job(), context_.clock.Now());
    if (status.ok())
      status = job.Gather(run, rows, cross_kv_rows_, context_.limits.reject_nonfinite);
    if (!status.ok()) {
      job.Fail(status);
      continue;
    }
    const ComputeRequest& compute = job.request();
    rows += compute.layout.tokens();
    if (compute.cross_kv_rows()) cross_kv_rows_.rows += compute.cross_kv_rows()->layout.tokens();
    jobs.push_back(&job);
  }
  return jobs;
}

CrossKvRange BatchExecutor::PlaceCrossKv(const std::vector<BatchJob>& batch) {
  int64_t hidden_states = 0, keys = 0;
  bool has_values = false;
  for (const BatchJob& job : batch) {
    hidden_states += job.request().layout.tokens();
    const CrossKvRows* input = job.request().cross_kv_rows();
    if (input == nullptr) continue;
    keys += input->layout.tokens();
    has_values = has_values || input->values;
  }
  const int64_t first = PaddedRows(hidden_states);
  return {
      .first_key = first, .first_value = first + (has_values ? PaddedRows(keys) : 0), .rows = 0};
}

absl::Status BatchExecutor::ProjectCrossKv(const Jobs& jobs, EncoderRun& run) {
  cross_kv_.clear();
  if (!jobs.front()->request().attends_cross_kv()) return absl::OkStatus();
  const absl::StatusOr<CrossKv> projected =
      run.ProjectCrossKv(jobs.front()->request().span.first_layer, cross_kv_rows_);
  if (!projected.ok()) return projected.status();
  for (BatchJob* job : jobs) {
    job->KeepCrossKv(*projected);
    for (int64_t b = 0; b < job->request().layout.sequences; ++b) {
      cross_kv_.push_back(job->CrossKvOf(*projected, b));
    }
  }
  return absl::OkStatus();
}

void BatchExecutor::Describe(const Jobs& jobs) {
  cu_seqlens_.assign({0});
  bias_.clear();
  positions_.clear();
  wanted_rows_.clear();
  head_gates_.clear();
  states_.clear();
  bool wants_all = false;
  const bool any_bias =
      std::any_of(jobs.begin(), jobs.end(), [](const BatchJob* job) { return job->bias(); });
  const bool any_chunk = std::any_of(jobs.begin(), jobs.end(), [](const BatchJob* job) {
    return job->request().sequence() != nullptr;
  });
  const bool any_gap = std::any_of(
      jobs.begin(), jobs.end(), [](const BatchJob* job) { return !job->request().layout.leading; });
  for (const BatchJob* job : jobs) {
    const TokenLayout& layout = job->request().layout;
    if (any_gap) {
      positions_.insert(positions_.end(), layout.positions.begin(), layout.positions.end());
    }
    wants_all = wants_all || !job->request().AppendWantedRows(cu_seqlens_.back(), wanted_rows_);
    for (int64_t b = 0; b < layout.sequences; ++b) {
      cu_seqlens_.push_back(cu_seqlens_.back() + static_cast<int32_t>(layout.length(b)));
      if (any_bias) bias_.push_back(job->bias() ? &job->bias()->sequences()[b] : nullptr);
      head_gates_.push_back(job->gates());
      if (any_chunk) states_.push_back(job->state());
    }
  }
  if (wants_all) wanted_rows_.clear();
}

absl::StatusOr<MatrixView<const float>> BatchExecutor::RunEngine(const Jobs& jobs,
                                                                 EncoderRun& run) {
  Describe(jobs);
  if (absl::Status status = ProjectCrossKv(jobs, run); !status.ok()) return status;
  BatchObserver observer(jobs, context_.clock);
  const ComputeRequest& leader = jobs.front()->request();
  const PackedBatch batch = {.cu_seqlens = cu_seqlens_,
                             .bias = bias_,
                             .positions = positions_,
                             .wanted_rows = wanted_rows_,
                             .cross_kv = cross_kv_,
                             .head_gates = head_gates_,
                             .states = states_};
  const int64_t first_layer = leader.span.first_layer;
  if (std::holds_alternative<Registration>(leader.operation)) return MatrixView<const float>();
  const AttendStage* stage = std::get_if<AttendStage>(&leader.operation);
  if (stage == nullptr) return run.Encode(first_layer, leader.span.layers, batch, observer);
  auto result = run.Attend(first_layer, *stage, batch, observer);
  for (BatchJob* job : jobs) job->TakeProbabilities(first_layer);
  return result;
}

void BatchExecutor::FailAll(const Jobs& jobs, const absl::Status& status) {
  const absl::Time now = context_.clock.Now();
  for (BatchJob* job : jobs) {
    // A run that was abandoned ends each job for its own reason.
    const absl::Status own = CheckAwaited(job->job(), now);
    job->Fail(own.ok() ? status : own);
  }
}

void BatchExecutor::Respond(const Jobs& jobs, MatrixView<const float> result, const Times& times,
                            const EncoderRun& run) {
  for (BatchJob* job : jobs) job->TakeResult(result, run.encoder());
  const absl::Duration scattering = context_.clock.Now() - times.computed;
  BatchTimings timings{.started = times.started,
                       .copy = times.gathered - times.started + scattering,
                       .compute = times.computed - times.gathered,
                       .tokens = absl::c_accumulate(jobs, int64_t{0},
                                                    [](int64_t sum, const BatchJob* job) {
                                                      return sum + job->job().tokens;
                                                    }),
                       .requests = static_cast<int32_t>(jobs.size())};
  context_.metrics.RecordBatch(
      {.model = jobs.front()->request().span.model->name,
       .tokens = timings.tokens,
       .requests = timings.requests,
       .copy = timings.copy,
       .compute = timings.compute,
       .fully_masked_rows = run.fully_masked_rows(),
       .nonfinite_requests = std::count_if(jobs.begin(), jobs.end(),
                                           [](const BatchJob* job) { return job->nonfinite(); })});
  for (BatchJob* job : jobs) job->Finish(timings, context_.cross_kv);
}

}  // namespace attendant::server
