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
  EncoderRun& run = runs_.at(batch.front().request().model.get());
  Times times;
  times.started = context_.clock.Now();
  const Jobs jobs = Gather(batch, run);
  if (jobs.empty()) return;
  times.gathered = context_.clock.Now();
  absl::StatusOr<MatrixView<const float>> result = RunEngine(jobs, run);
  if (!result.ok()) return FailAll(jobs, result.status());
  times.computed = context_.clock.Now();
  Answer(jobs, *result, times, run);
}

BatchExecutor::Jobs BatchExecutor::Gather(std::vector<BatchJob>& batch, EncoderRun& run) {
  Jobs jobs;
  int64_t rows = 0;
  memory_rows_ = PlaceMemories(batch);
  for (BatchJob& job : batch) {
    absl::Status status = CheckAwaited(job.job(), context_.clock.Now());
    if (status.ok()) status = job.Gather(run, rows, memory_rows_, context_.limits.reject_nonfinite);
    if (!status.ok()) {
      job.Fail(status);
      continue;
    }
    const ComputeRequest& compute = job.request();
    rows += compute.layout.tokens();
    if (compute.memory) memory_rows_.rows += compute.memory->layout.tokens();
    jobs.push_back(&job);
  }
  return jobs;
}

CrossKvRows BatchExecutor::PlaceMemories(const std::vector<BatchJob>& batch) {
  int64_t hidden_states = 0, keys = 0;
  bool has_values = false;
  for (const BatchJob& job : batch) {
    hidden_states += job.request().layout.tokens();
    if (!job.request().memory) continue;
    keys += job.request().memory->layout.tokens();
    has_values = has_values || job.request().memory->values;
  }
  const int64_t first = PaddedRows(hidden_states);
  return {
      .first_key = first, .first_value = first + (has_values ? PaddedRows(keys) : 0), .rows = 0};
}

absl::Status BatchExecutor::ProjectMemories(const Jobs& jobs, EncoderRun& run) {
  memory_.clear();
  if (!jobs.front()->request().attends_memory()) return absl::OkStatus();
  const absl::StatusOr<CrossKv> projected =
      run.ProjectCrossKv(jobs.front()->request().first_layer, memory_rows_);
  if (!projected.ok()) return projected.status();
  for (BatchJob* job : jobs) {
    if (job->request().registration) job->KeepMemory(*projected);
    for (int64_t b = 0; b < job->request().layout.sequences; ++b) {
      memory_.push_back(job->MemoryOf(*projected, b));
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
  const bool any_part = std::any_of(jobs.begin(), jobs.end(), [](const BatchJob* job) {
    return job->request().part_of != nullptr;
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
      if (any_part) states_.push_back(job->state());
    }
  }
  if (wants_all) wanted_rows_.clear();
}

absl::StatusOr<MatrixView<const float>> BatchExecutor::RunEngine(const Jobs& jobs,
                                                                 EncoderRun& run) {
  Describe(jobs);
  if (absl::Status status = ProjectMemories(jobs, run); !status.ok()) return status;
  BatchObserver observer(jobs, context_.clock);
  const ComputeRequest& leader = jobs.front()->request();
  const PackedBatch batch = {.cu_seqlens = cu_seqlens_,
                             .bias = bias_,
                             .positions = positions_,
                             .wanted_rows = wanted_rows_,
                             .cross_kv = memory_,
                             .head_gates = head_gates_,
                             .states = states_};
  const auto attend = [&](AttendStage stage) {
    auto result = run.Attend(leader.first_layer, stage, batch, observer);
    for (BatchJob* job : jobs) job->TakeProbabilities(leader.first_layer);
    return result;
  };
  switch (leader.operation) {
    case Operation::kAttendContext:
      return attend(AttendStage::kContext);
    case Operation::kAttendProjected:
      return attend(AttendStage::kProjected);
    case Operation::kAttendBlock:
      return attend(AttendStage::kBlock);
    case Operation::kPutMemory:
      return MatrixView<const float>();
    case Operation::kEncode:
      break;
  }
  return run.Encode(leader.first_layer, leader.layers, batch, observer);
}

void BatchExecutor::FailAll(const Jobs& jobs, const absl::Status& status) {
  const absl::Time now = context_.clock.Now();
  for (BatchJob* job : jobs) {
    // A run that was abandoned ends each job for its own reason.
    const absl::Status own = CheckAwaited(job->job(), now);
    job->Fail(own.ok() ? status : own);
  }
}

void BatchExecutor::Answer(const Jobs& jobs, MatrixView<const float> result, const Times& times,
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
      {.model = jobs.front()->request().model->name,
       .tokens = timings.tokens,
       .requests = timings.requests,
       .copy = timings.copy,
       .compute = timings.compute,
       .fully_masked_rows = run.fully_masked_rows(),
       .nonfinite_requests = std::count_if(jobs.begin(), jobs.end(),
                                           [](const BatchJob* job) { return job->nonfinite(); })});
  for (BatchJob* job : jobs) job->Finish(timings, context_.memories);
}

}  // namespace attendant::server
