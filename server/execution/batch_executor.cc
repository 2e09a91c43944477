#include "server/execution/batch_executor.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/layers/state/batch.h"
#include "server/base/fault.h"
#include "server/host/node_binding.h"

namespace attendant::server {
namespace {

// Observes a run on behalf of its batch's entries: provides the targets of probabilities, collects
// each layer's requested results, and stops the run between two layers once all entries are
// cancelled, failed or expired.
class BatchObserver final : public RunObserver {
 public:
  // `entries` are the batch's entries, in the order of their sequences.
  BatchObserver(absl::Span<EntryRun* const> entries, const Clock& clock)
      : entries_(entries), clock_(clock) {
    for (EntryRun* entry : entries_) {
      const int64_t count = entry->request().layout.sequences;
      for (int64_t b = 0; b < count; ++b) sequences_.emplace_back(entry, b);
    }
  }

  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override {
    const auto& [entry, own] = sequences_[sequence];
    return entry->ProbabilitiesTarget(layer, own);
  }

  void OnValues(int64_t, MatrixView<const float> values) override {
    for (EntryRun* entry : entries_) entry->TakeValues(values);
  }

  void AfterLayer(int64_t layer, MatrixView<const float> hidden_states) override {
    for (EntryRun* entry : entries_) {
      entry->TakeProbabilities(layer);
      entry->TakeIntermediate(layer, hidden_states);
    }
  }

  bool WantsMore() override {
    const absl::Time now = clock_.Now();
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const EntryRun* entry) { return CheckAwaited(entry->job(), now).ok(); });
  }

 private:
  const absl::Span<EntryRun* const> entries_;
  const Clock& clock_;
  std::vector<std::pair<EntryRun*, int64_t>> sequences_;  // each one's entry, and its index there
};

}  // namespace

BatchExecutor::BatchExecutor(const ServiceContext& context, int instance)
    : context_(context), instance_(instance), free_since_(context.clock.Now()) {
  const ThreadPlan& plan = context.thread_plan;
  if (!plan.nodes.empty()) BindToNode(plan.nodes[plan.CopyOf(instance)]);
}

void BatchExecutor::Run(const Batch& batch) {
  if (batch.waited_for) free_since_ = context_.clock.Now();
  const absl::Time before = free_since_;
  if (std::vector<EntryRun> all = Begin(batch); !all.empty()) {
    // Held here because the jobs end before the run is left.
    const std::shared_ptr<const ServedModel> model = all.front().job().model;
    EncoderRun& run = (*model->runs)[static_cast<size_t>(instance_)];
    const absl::Status status = Guarded([&] { RunEntries(all, batch.close, run); });
    for (EntryRun& entry : all) {
      if (!status.ok() && !entry.ended()) entry.Fail(status);
    }
  }
  if (free_since_ == before) free_since_ = context_.clock.Now();  // there are no results
}

std::vector<EntryRun> BatchExecutor::Begin(const Batch& batch) {
  std::vector<EntryRun> all;
  const absl::Status reserved = Guarded([&] { all.reserve(batch.entries.size()); });
  for (const BatchEntry& entry : batch.entries) {
    const auto job = std::static_pointer_cast<ComputeJob>(entry.job);
    if (!job->BeginSlice()) continue;
    absl::Status status = reserved;
    if (status.ok()) status = Guarded([&] { all.emplace_back(job, entry, context_); });
    if (!status.ok()) job->EndSlice(entry.sequences, absl::ZeroDuration(), status);
  }
  return all;
}

void BatchExecutor::RunEntries(std::vector<EntryRun>& all, BatchClose close, EncoderRun& run) {
  BatchReport report(context_, all.front().request().span.model, free_since_);
  const Entries entries = Gather(all, run);
  if (entries.empty()) return;
  report.Gathered();
  absl::StatusOr<MatrixView<const float>> result = RunEngine(entries, run);
  if (!result.ok()) return FailAll(entries, result.status());
  WeighVocabulary(entries, *result, run);
  report.Computed();
  TakeResults(entries, *result, run, close, report);
  completer_.Complete({std::move(all), std::move(report)});
}

BatchExecutor::Entries BatchExecutor::Gather(std::vector<EntryRun>& batch, EncoderRun& run) {
  Entries entries;
  int64_t rows = 0;
  cross_kv_rows_ = PlaceCrossKv(batch);
  for (EntryRun& entry : batch) {
    absl::Status status = CheckAwaited(entry.job(), context_.clock.Now());
    if (status.ok()) status = Guarded([&] { return entry.Gather(run, rows, cross_kv_rows_); });
    if (!status.ok()) {
      entry.Fail(status);
      continue;
    }
    const ComputeRequest& compute = entry.request();
    rows += compute.layout.tokens();
    if (compute.cross_kv_rows()) cross_kv_rows_.rows += compute.cross_kv_rows()->layout.tokens();
    entries.push_back(&entry);
  }
  return entries;
}

CrossKvRange BatchExecutor::PlaceCrossKv(const std::vector<EntryRun>& batch) {
  int64_t hidden_states = 0, keys = 0;
  bool has_values = false;
  for (const EntryRun& entry : batch) {
    hidden_states += entry.request().layout.tokens();
    const CrossKvRows* input = entry.request().cross_kv_rows();
    if (input == nullptr) continue;
    keys += input->layout.tokens();
    has_values = has_values || input->values;
  }
  return {.first_key = hidden_states,
          .first_value = hidden_states + (has_values ? keys : 0),
          .rows = 0};
}

absl::Status BatchExecutor::ProjectCrossKv(const Entries& entries, EncoderRun& run) {
  cross_kv_.clear();
  const ComputeRequest& leader = entries.front()->request();
  if (!leader.attends_cross_kv()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CrossKv projected,
                   run.ProjectCrossKv(leader.span.first_layer, cross_kv_rows_));
  for (EntryRun* entry : entries) {
    if (leader.registration()) {
      entry->TakeCrossKv(projected);
      continue;
    }
    for (int64_t b = 0; b < entry->request().layout.sequences; ++b) {
      cross_kv_.push_back(entry->CrossKvOf(projected, b));
    }
  }
  return absl::OkStatus();
}

void BatchExecutor::Describe(const Entries& entries) {
  cu_seqlens_.assign({0});
  bias_.clear();
  positions_.clear();
  selected_rows_.clear();
  head_gates_.clear();
  states_.clear();
  bool wants_all = false;
  const bool any_bias = std::any_of(entries.begin(), entries.end(),
                                    [](const EntryRun* entry) { return entry->bias(); });
  const bool any_chunk = std::any_of(entries.begin(), entries.end(), [](const EntryRun* entry) {
    return entry->request().sequence() != nullptr;
  });
  const bool any_gap = std::any_of(entries.begin(), entries.end(), [](const EntryRun* entry) {
    return !entry->request().layout.leading;
  });
  for (const EntryRun* entry : entries) {
    const TokenLayout& layout = entry->request().layout;
    if (any_gap) {
      positions_.insert(positions_.end(), layout.positions.begin(), layout.positions.end());
    }
    wants_all =
        wants_all || !entry->request().AppendSelectedRows(cu_seqlens_.back(), selected_rows_);
    for (int64_t b = 0; b < layout.sequences; ++b) {
      cu_seqlens_.push_back(cu_seqlens_.back() + static_cast<int32_t>(layout.length(b)));
      if (any_bias) bias_.push_back(entry->bias() ? &entry->bias()->sequences()[b] : nullptr);
      head_gates_.push_back(entry->gates());
      if (any_chunk) states_.push_back(entry->state());
    }
  }
  if (wants_all) selected_rows_.clear();
}

absl::StatusOr<MatrixView<const float>> BatchExecutor::RunEngine(const Entries& entries,
                                                                 EncoderRun& run) {
  Describe(entries);
  RETURN_IF_ERROR(ProjectCrossKv(entries, run));
  const ComputeRequest& leader = entries.front()->request();
  if (leader.registration()) return MatrixView<const float>();
  BatchObserver observer(entries, context_.clock);
  const PackedBatch batch = {.cu_seqlens = cu_seqlens_,
                             .bias = bias_,
                             .positions = positions_,
                             .selected_rows = selected_rows_,
                             .cross_kv = cross_kv_,
                             .head_gates = head_gates_,
                             .states = states_};
  const int64_t first_layer = leader.span.first_layer;
  const AttendStage* stage = std::get_if<AttendStage>(&leader.operation);
  if (stage == nullptr) return run.Encode(first_layer, leader.span.layers, batch, observer);
  auto result = run.Attend(first_layer, *stage, batch, observer);
  if (!result.ok()) return result;
  for (EntryRun* entry : entries) entry->TakeProbabilities(first_layer);
  return result;
}

void BatchExecutor::FailAll(const Entries& entries, const absl::Status& status) {
  const absl::Time now = context_.clock.Now();
  for (EntryRun* entry : entries) {
    // A run that was abandoned ends each entry for its own reason.
    const absl::Status own = CheckAwaited(entry->job(), now);
    entry->Fail(own.ok() ? status : own);
  }
}

// All entries of the batch together, so that the weights are read once and the team has enough to
// share.
void BatchExecutor::ApplyHeads(const Entries& entries, MatrixView<const float> result,
                               EncoderRun& run) {
  for (const HeadKind head :
       {HeadKind::kNone, HeadKind::kPooling, HeadKind::kClassifier, HeadKind::kTokenHead}) {
    const absl::Status status = Guarded([&] {
      head_rows_.clear();
      for (EntryRun* entry : entries) entry->AppendHeadRows(head, head_rows_);
      if (head_rows_.empty()) return;
      run.ApplyHead(
          head, static_cast<int64_t>(head_rows_.size()),
          [&](int64_t row, absl::Span<float> input) {
            head_rows_[row].entry->FillHeadRow(head, head_rows_[row].index, result, input);
          },
          [&](int64_t row, absl::Span<float> output) {
            head_rows_[row].entry->TakeHeadRow(head, head_rows_[row].index, output);
          });
    });
    for (EntryRun* entry : entries) entry->Refuse(status);
  }
  const absl::Status status = Guarded([&] {
    head_rows_.clear();
    for (EntryRun* entry : entries) entry->AppendScoredSequences(head_rows_);
    run.team().ParallelFor(static_cast<int64_t>(head_rows_.size()), [&](int, int64_t i) {
      head_rows_[i].entry->ScoreSequence(head_rows_[i].index);
    });
  });
  for (EntryRun* entry : entries) entry->Refuse(status);
}

// All entries of the batch together, so that the weights are read once.
void BatchExecutor::WeighVocabulary(const Entries& entries, MatrixView<const float> result,
                                    EncoderRun& run) {
  vocabulary_sequences_.clear();
  for (EntryRun* entry : entries) {
    entry->AppendVocabularySequences(vocabulary_sequences_);
  }
  if (vocabulary_sequences_.empty()) return;
  const absl::Status status = Guarded([&] { run.WeighVocabulary(result, vocabulary_sequences_); });
  for (EntryRun* entry : entries) {
    if (entry->request().outputs.sparse) entry->Refuse(status);
  }
}

void BatchExecutor::TakeResults(const Entries& entries, MatrixView<const float> result,
                                EncoderRun& run, BatchClose close, BatchReport& report) {
  const ComputeRequest& leader = entries.front()->request();
  const SpanCost cost = leader.span.model->cost->Predict(leader.range());
  BatchRecord counts;
  counts.close = Name(close);
  counts.requests = std::ssize(entries);
  counts.fully_masked_rows = leader.registration() ? 0 : run.fully_masked_rows();
  double predicted_seconds = cost.per_batch;
  for (EntryRun* entry : entries) {
    entry->TakeResult(result);
    counts.tokens += entry->request().tokens();
    // One that cannot be counted fails nothing.
    Guarded([&] {
      report.CountDeadline(entry->job().deadline, entry->request().tokens());
    }).IgnoreError();
    predicted_seconds += entry->request().PredictSeconds(cost);
    if (entry->nonfinite()) ++counts.nonfinite_requests;
  }
  ApplyHeads(entries, result, run);
  report.Finish(std::move(counts), predicted_seconds);
  free_since_ = report.finished();
}

RunBatch MakeRunner(const ServiceContext& context, int instance) {
  return [executor = std::make_shared<BatchExecutor>(context, instance)](const Batch& batch) {
    executor->Run(batch);
  };
}

}  // namespace attendant::server
