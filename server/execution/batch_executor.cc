#include "server/execution/batch_executor.h"

#include <algorithm>
#include <utility>

#include "server/base/fault.h"
#include "server/execution/batch_observer.h"
#include "server/execution/run_registrations.h"
#include "server/host/node_binding.h"

namespace attendant::server {

BatchExecutor::BatchExecutor(const ServiceContext& context, int instance)
    : context_(context), instance_(instance), free_since_(context.clock.Now()) {
  const ThreadPlan& plan = context.thread_plan;
  if (!plan.nodes.empty()) BindToNode(plan.nodes[plan.CopyOf(instance)]);
}

void BatchExecutor::Run(Batch<ServiceJob> batch) {
  if (batch.waited_for) free_since_ = context_.clock.Now();
  const absl::Time before = free_since_;
  RunKind(batch);
  if (free_since_ == before) free_since_ = context_.clock.Now();  // there are no results
}

void BatchExecutor::RunKind(const Batch<ServiceJob>& batch) {
  const ServiceJob& first = batch.pieces.front().job;
  // Held here because the jobs end before the run is left.
  const std::shared_ptr<const ServedModel> model = first.model();
  EncoderRun& run = (*model->runs)[static_cast<size_t>(instance_)];
  const absl::Status status = Guarded([&] {
    switch (first.info().key.kind) {
      case JobKind::kCompute:
        return Compute(batch, run);
      case JobKind::kRegistration:
        return RunRegistrations(batch, run, context_, free_since_);
    }
  });
  if (status.ok()) return;
  // No job has been started.
  for (const Piece<ServiceJob>& piece : batch.pieces) piece.job.Fail(status);
}

void BatchExecutor::Compute(const Batch<ServiceJob>& batch, EncoderRun& run) {
  std::vector<BatchJob> all;
  all.reserve(batch.pieces.size());
  for (const Piece<ServiceJob>& piece : batch.pieces) {
    ComputeJob& job = *piece.job.compute();
    if (!job.Start()) continue;
    const absl::Status status =
        Guarded([&] { all.emplace_back(piece, context_.limits.reject_nonfinite); });
    if (!status.ok()) job.EndPart(piece.sequences, absl::ZeroDuration(), status);
  }
  if (all.empty()) return;
  const absl::Status status = Guarded([&] { RunJobs(all, batch.close, run); });
  if (status.ok()) return;
  for (BatchJob& job : all) {
    if (!job.ended()) job.Fail(status);
  }
}

void BatchExecutor::RunJobs(std::vector<BatchJob>& all, BatchClose close, EncoderRun& run) {
  BatchReport report(context_, all.front().request().span.model, free_since_);
  const Jobs jobs = Gather(all, run);
  if (jobs.empty()) return;
  report.Gathered();
  absl::StatusOr<MatrixView<const float>> result = RunEngine(jobs, run);
  if (!result.ok()) return FailAll(jobs, result.status());
  WeighVocabulary(jobs, *result, run);
  report.Computed();
  TakeResults(jobs, *result, run, {.close = close}, report);
  ender_.End({std::move(all), std::move(report)});
}

BatchExecutor::Jobs BatchExecutor::Gather(std::vector<BatchJob>& batch, EncoderRun& run) {
  Jobs jobs;
  int64_t rows = 0;
  cross_kv_rows_ = PlaceCrossKvOf(batch);
  for (BatchJob& job : batch) {
    absl::Status status = CheckAwaited(job.job(), context_.clock.Now());
    if (status.ok()) status = Guarded([&] { return job.Gather(run, rows, cross_kv_rows_); });
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

CrossKvRange BatchExecutor::PlaceCrossKvOf(const std::vector<BatchJob>& batch) {
  int64_t hidden_states = 0, keys = 0;
  bool has_values = false;
  for (const BatchJob& job : batch) {
    hidden_states += job.request().layout.tokens();
    const CrossKvRows* input = job.request().cross_kv_rows();
    if (input == nullptr) continue;
    keys += input->layout.tokens();
    has_values = has_values || input->values;
  }
  return PlaceCrossKv(hidden_states, keys, has_values);
}

absl::Status BatchExecutor::ProjectCrossKv(const Jobs& jobs, EncoderRun& run) {
  cross_kv_.clear();
  if (!jobs.front()->request().attends_cross_kv()) return absl::OkStatus();
  const absl::StatusOr<CrossKv> projected =
      run.ProjectCrossKv(jobs.front()->request().span.first_layer, cross_kv_rows_);
  if (!projected.ok()) return projected.status();
  for (BatchJob* job : jobs) {
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
  const AttendStage* stage = std::get_if<AttendStage>(&leader.operation);
  if (stage == nullptr) return run.Encode(first_layer, leader.span.layers, batch, observer);
  auto result = run.Attend(first_layer, *stage, batch, observer);
  if (!result.ok()) return result;
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

// All jobs of the batch together, so that the team has enough to share.
void BatchExecutor::ApplyHeads(const Jobs& jobs, MatrixView<const float> result,
                               const EncoderRun& run) {
  head_items_.clear();
  for (BatchJob* job : jobs) {
    for (int64_t b = 0; b < job->sequences_to_pool(); ++b) {
      head_items_.push_back({job, b, /*is_tile=*/false, absl::OkStatus()});
    }
    for (int64_t tile = 0; tile < job->tiles_of_tokens(); ++tile) {
      head_items_.push_back({job, tile, /*is_tile=*/true, absl::OkStatus()});
    }
  }
  pooled_.resize(run.team().size());
  run.team().ParallelFor(static_cast<int64_t>(head_items_.size()), [&](int worker, int64_t i) {
    HeadItem& item = head_items_[i];
    // So that one that finds no memory fails its own job alone.
    item.status = Guarded([&] {
      if (item.is_tile) return item.job->MakeTokenVectors(item.index, result, run.encoder());
      item.job->Pool(item.index, result, run.encoder(), pooled_[worker]);
    });
  });
  for (const HeadItem& item : head_items_) item.job->Refuse(item.status);
}

// All jobs of the batch together, so that the weights are read once.
void BatchExecutor::WeighVocabulary(const Jobs& jobs, MatrixView<const float> result,
                                    EncoderRun& run) {
  vocabulary_sequences_.clear();
  for (BatchJob* job : jobs) {
    job->AppendVocabularySequences(vocabulary_sequences_);
  }
  if (vocabulary_sequences_.empty()) return;
  const absl::Status status = Guarded([&] { run.WeighVocabulary(result, vocabulary_sequences_); });
  for (BatchJob* job : jobs) {
    if (job->request().outputs.sparse) job->Refuse(status);
  }
}

void BatchExecutor::TakeResults(const Jobs& jobs, MatrixView<const float> result,
                                const EncoderRun& run, BatchCounts counts, BatchReport& report) {
  const ComputeRequest& leader = jobs.front()->request();
  const SpanCost cost = leader.span.model->cost->Predict(leader.range());
  counts.requests = static_cast<int32_t>(jobs.size());
  counts.fully_masked_rows = run.fully_masked_rows();
  counts.predicted_seconds = cost.per_batch;
  for (BatchJob* job : jobs) {
    job->TakeResult(result);
    counts.tokens += job->request().tokens();
    // One that cannot be counted fails nothing.
    Guarded([&] {
      report.CountDeadline(job->job().deadline, job->request().tokens());
    }).IgnoreError();
    counts.predicted_seconds += job->request().PredictSeconds(cost);
    if (job->nonfinite()) ++counts.nonfinite_requests;
  }
  ApplyHeads(jobs, result, run);
  report.Finish(counts);
  free_since_ = report.finished();
}

}  // namespace attendant::server
