#include "engine/layers/state/layer_run.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"

namespace attendant {

bool LayerRun::WantsProbabilities() const {
  return std::any_of(sequences.begin(), sequences.end(), [](const AttentionSequence& sequence) {
    return sequence.probabilities != nullptr;
  });
}

absl::Status BatchRun::Begin(const PackedBatch& batch, int64_t first_layer, RunObserver& observer) {
  RETURN_IF_ERROR(CheckBatch(batch, model_, workspace_.max_tokens));
  batch_ = &batch;
  first_layer_ = first_layer;
  observer_ = &observer;
  workspace_.fully_masked_rows = 0;
  selected_queries_.reserve(batch.sequences());  // usually one selected row per sequence
  positions_.clear();
  if (tables_.has_rotary()) TakePositions();
  return absl::OkStatus();
}

// Positions are relative to the first kept token, so padding before it does not change the bits.
void BatchRun::TakePositions() {
  for (int64_t i = 0; i < batch_->sequences(); ++i) {
    const int32_t begin = batch_->cu_seqlens[i];
    for (int32_t t = begin; t < batch_->cu_seqlens[i + 1]; ++t) {
      positions_.push_back(
          batch_->positions.empty() ? t - begin : batch_->positions[t] - batch_->positions[begin]);
    }
  }
}

AttentionSequence BatchRun::SequenceOf(int64_t i, int64_t span_index) const {
  const PackedBatch& batch = *batch_;
  const int64_t begin = batch.cu_seqlens[i], length = batch.cu_seqlens[i + 1] - begin;
  AttentionSequence sequence = {.row_begin = begin, .length = length};
  if (!batch.bias.empty()) sequence.bias = batch.bias[i];
  if (!batch.positions.empty()) sequence.positions = batch.positions.subspan(begin, length);
  if (!batch.cross_kv.empty()) sequence.cross_kv = &batch.cross_kv[i];
  if (!batch.head_gates.empty() && batch.head_gates[i].data != nullptr) {
    const HeadGates& gates = batch.head_gates[i];
    sequence.head_gates = gates.data + span_index * gates.layer_stride;
  }
  if (!batch.states.empty()) {
    const LinearState& state = batch.states[i];
    const int64_t first = span_index * LayerStateSize(model_.layer);
    if (state.before != nullptr) sequence.state.before = state.before + first;
    if (state.after != nullptr) sequence.state.after = state.after + first;
  }
  return sequence;
}

LayerRun BatchRun::Layer(int64_t layer, bool is_last) {
  const int64_t span_index = layer - first_layer_;
  const bool has_probabilities = ScoresPairs(model_.layer.attention.kind);
  sequences_.clear();
  for (int64_t i = 0; i < batch_->sequences(); ++i) {
    sequences_.push_back(SequenceOf(i, span_index));
    if (!has_probabilities) continue;
    sequences_.back().probabilities = observer_->ProbabilitiesTarget(layer, i);
  }
  LayerRun run = {.workspace = workspace_,
                  .tables = tables_,
                  .tokens = batch_->tokens(),
                  .sequences = sequences_,
                  .queries = sequences_,
                  .positions = positions_,
                  .has_cross_kv = !batch_->cross_kv.empty(),
                  .layer = layer,
                  .observer = observer_};
  if (!is_last || NeedsOtherRows(run)) return run;
  NarrowQueries(span_index);
  run.queries = selected_queries_;
  run.selected_rows = batch_->selected_rows;
  return run;
}

bool BatchRun::NeedsOtherRows(const LayerRun& run) const {
  const int64_t wanted = static_cast<int64_t>(batch_->selected_rows.size());
  return wanted == 0 || wanted == run.tokens || !batch_->states.empty() || run.WantsProbabilities();
}

// Adds one entry for each range of adjacent selected rows in a sequence.
void BatchRun::NarrowQueries(int64_t span_index) {
  selected_queries_.clear();
  int64_t i = -1;
  for (const int32_t row : batch_->selected_rows) {
    const int64_t before = i;
    while (row >= batch_->cu_seqlens[i + 1]) ++i;
    const int64_t query = row - batch_->cu_seqlens[i];
    if (i == before) {
      AttentionSequence& last = selected_queries_.back();
      if (last.first_query + last.queries == query) {
        ++last.queries;
        continue;
      }
    }
    selected_queries_.push_back(SequenceOf(i, span_index));
    selected_queries_.back().first_query = query;
    selected_queries_.back().queries = 1;
  }
}

}  // namespace attendant
