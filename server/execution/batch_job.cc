#include "server/execution/batch_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/shape.h"
#include "engine/kernels/convert.h"
#include "engine/layers/pooling.h"
#include "server/models/compute_dtype.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Where `layer` stands in the list, if it does.
std::optional<size_t> IndexOf(const std::vector<int64_t>& layers, int64_t layer) {
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end()) return std::nullopt;
  return found - layers.begin();
}

absl::Status RefuseNonfinite(const char* field, const CheckedTensor& tensor, int64_t row,
                             const float* values) {
  int64_t column = 0;
  while (std::isfinite(values[column])) ++column;
  std::vector<int64_t> index = {row, column};
  if (tensor.shape.size() == 3) index = {row / tensor.dim(1), row % tensor.dim(1), column};
  return Refusal(absl::StrCat(field, ShapeToString(index)), "a finite number",
                 absl::StrCat(values[column]));
}

}  // namespace

absl::Status BatchJob::Gather(EncoderRun& run, int64_t first_row, const CrossKvRows& memory,
                              bool reject_nonfinite) {
  first_row_ = first_row;
  const ComputeRequest& compute = request();
  answer_.intermediate.resize(compute.intermediate_layers.size());
  const AttentionOutput& attention = compute.attention;
  if (attention.probabilities) answer_.probabilities.resize(attention.layers.size());
  if (attention.form == AttentionForm::kTopKeys) {
    answer_.attention_keys.resize(answer_.probabilities.size());
  }
  if (compute.bias) {
    absl::StatusOr<GatheredBias> bias = GatheredBias::Gather(*compute.bias, compute.layout);
    if (!bias.ok()) return bias.status();
    bias_ = *std::move(bias);
  }
  if (const KeptIds* ids = std::get_if<KeptIds>(&compute.input)) {
    run.Embed(ids->view(), first_row);
    return absl::OkStatus();
  }
  const MatrixView<float> rows = run.input().Rows(first_row, compute.layout.tokens());
  const CheckedTensor& tensor = std::get<CheckedTensor>(compute.input);
  if (compute.features) {
    const int64_t features = compute.features->tokens();
    absl::Status status = GatherRows({"features", tensor, *compute.features},
                                     run.FeatureRows(first_row_, features), reject_nonfinite);
    if (!status.ok()) return status;
    run.ProjectFeatures(first_row_, features);
    AddFronts(rows, run);
    return absl::OkStatus();
  }
  absl::Status status =
      GatherRows({"hidden_states", tensor, compute.layout}, rows, reject_nonfinite);
  if (status.ok() && compute.memory) status = GatherMemory(run, memory, reject_nonfinite);
  return status;
}

absl::Status BatchJob::GatherMemory(EncoderRun& run, const CrossKvRows& memory,
                                    bool reject_nonfinite) {
  const MemoryInput& input = *request().memory;
  const int64_t count = input.layout.tokens();
  first_memory_row_ = memory.rows;
  absl::Status status =
      GatherRows({"memory.hidden_states", input.hidden_states, input.layout},
                 run.key_input().Rows(memory.first_key + memory.rows, count), reject_nonfinite);
  if (!status.ok() || !input.values) return status;
  return GatherRows({"memory.values", *input.values, input.layout},
                    run.value_input().Rows(memory.first_value + memory.rows, count),
                    reject_nonfinite);
}

CrossKv BatchJob::MemoryOf(const CrossKv& projected, int64_t sequence) const {
  const RegisteredMemory* registered = request().registered.get();
  const TokenLayout& layout = request().key_layout();
  const int64_t own = request().key_sequence(sequence), count = layout.length(own);
  const int64_t first = layout.cu_seqlens[own] + (registered ? 0 : first_memory_row_);
  CrossKv memory;
  memory.keys = (registered ? registered->keys() : projected.keys).Rows(first, count);
  memory.values = (registered ? registered->values() : projected.values).Rows(first, count);
  if (!layout.leading) memory.positions = layout.positions_of(own);
  return memory;
}

void BatchJob::KeepMemory(const CrossKv& projected) {
  RegisteredMemory& kept = *request().registration->memory;
  const auto copy = [&](MatrixView<const float> from, MatrixView<float> to) {
    for (int64_t r = 0; r < to.rows; ++r) {
      std::copy_n(from.row(first_memory_row_ + r), to.cols, to.row(r));
    }
  };
  copy(projected.keys, kept.keys());
  copy(projected.values, kept.values());
}

// From the last sequence to the first, features make room for what goes before them.
void BatchJob::AddFronts(MatrixView<float> rows, EncoderRun& run) {
  const TokenLayout& features = *request().features;
  const TokenLayout& layout = request().layout;
  for (int64_t b = layout.sequences - 1; b >= 0; --b) {
    const int64_t length = features.length(b);
    if (length == 0) continue;
    const float* from = rows.row(features.cu_seqlens[b]);
    float* to = rows.row(layout.cu_seqlens[b + 1] - length);
    std::memmove(to, from, static_cast<size_t>(length * rows.stride) * sizeof(float));
    run.AddFront(features.positions_of(b), first_row_ + layout.cu_seqlens[b]);
  }
}

absl::Status BatchJob::GatherRows(const NamedRows& from, MatrixView<float> rows,
                                  bool reject_nonfinite) {
  const CheckedTensor& tensor = from.tensor;
  int64_t kept = 0;
  for (const RowRun& run : from.layout.runs) {
    for (int64_t i = 0; i < run.count; ++i, ++kept) {
      // Row by row, so that the check finds the row in the cache.
      float* row = rows.row(kept);
      tensor.data.ReadFloats(tensor.dtype, (run.first + i) * rows.cols, rows.cols, row);
      if (AllFinite(row, rows.cols)) continue;
      nonfinite_ = true;
      if (reject_nonfinite) return RefuseNonfinite(from.field, tensor, run.first + i, row);
    }
  }
  return absl::OkStatus();
}

HeadGates BatchJob::gates() const {
  const std::vector<float>& gates = request().head_gates;
  const int64_t heads = request().description().layer.heads;
  if (gates.empty()) return {};
  return {gates.data(), static_cast<int64_t>(gates.size()) == heads ? 0 : heads};
}

float* BatchJob::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const ComputeRequest& compute = request();
  if (!IndexOf(compute.attention.layers, layer)) return nullptr;
  if (pairs_before_.empty()) {
    int64_t pairs = 0;
    for (int64_t b = 0; b < compute.layout.sequences; ++b) {
      pairs_before_.push_back(pairs);
      pairs += compute.pairs(b);
    }
    probabilities_ = AlignedBuffer<float>(compute.description().layer.heads * pairs);
  }
  return probabilities_.data() + compute.description().heads_at(layer) * pairs_before_[sequence];
}

void BatchJob::TakeValues(MatrixView<const float> batch_rows) {
  if (!request().attention.weighted_values) return;
  const MatrixView<const float> rows = OwnRows(batch_rows);
  values_.clear();
  for (int64_t r = 0; r < rows.rows; ++r) {
    values_.insert(values_.end(), rows.row(r), rows.row(r) + rows.cols);
  }
}

std::optional<AnswerTensor> BatchJob::MakeTensor(std::vector<int64_t> shape) {
  return MakeTensor(std::move(shape), request().output_dtype);
}

std::optional<AnswerTensor> BatchJob::MakeTensor(std::vector<int64_t> shape, DataType dtype) {
  auto tensor = AnswerTensor::Make(std::move(shape), dtype);
  if (tensor.ok()) return *std::move(tensor);
  status_.Update(tensor.status());
  return std::nullopt;
}

void BatchJob::TakeProbabilities(int64_t layer) {
  const ComputeRequest& compute = request();
  const std::optional<size_t> index = IndexOf(compute.attention.layers, layer);
  if (!index) return;
  const int64_t heads = compute.description().heads_at(layer);
  const DenseProbabilities dense = {compute.layout, compute.key_layout(), heads,
                                    probabilities_.data()};
  if (compute.attention.weighted_values) {
    const int64_t width = heads * compute.description().layer.value_width;
    answer_.weighted_values = MakeTensor(compute.weighted_values_shape(layer));
    if (!answer_.weighted_values) return;
    ScatterWeightedValues(dense, {values_.data(), compute.layout.tokens(), width, width},
                          *answer_.weighted_values);
  }
  if (compute.attention.probabilities) PlaceProbabilities(layer, *index, dense);
}

void BatchJob::PlaceProbabilities(int64_t layer, size_t index, DenseProbabilities dense) {
  const ComputeRequest& compute = request();
  const std::vector<int64_t> shape = compute.probabilities_shape(layer);
  std::optional<AnswerTensor> target = MakeTensor(shape);
  if (!target) return;
  if (compute.attention.form == AttentionForm::kTopKeys) {
    std::optional<AnswerTensor> keys = MakeTensor(shape, DataType::kInt32);
    if (!keys) return;
    ScatterTopKeys(dense, *target, *keys);
    answer_.attention_keys[index] = {layer, *std::move(keys)};
  } else if (compute.attention.form == AttentionForm::kHeadMean) {
    ScatterProbabilities(AverageHeads(dense), *target);
  } else {
    ScatterProbabilities(dense, *target);
  }
  answer_.probabilities[index] = {layer, *std::move(target)};
}

void BatchJob::TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows) {
  const ComputeRequest& compute = request();
  const std::optional<size_t> index = IndexOf(compute.intermediate_layers, layer);
  if (!index) return;
  std::optional<AnswerTensor> target = MakeTensor(compute.rows_shape());
  if (!target) return;
  ScatterRows(compute.layout, OwnRows(batch_rows), *target);
  answer_.intermediate[*index] = {layer, *std::move(target)};
}

void BatchJob::TakeResult(MatrixView<const float> batch_rows, const Encoder& encoder) {
  const ComputeRequest& compute = request();
  const MatrixView<const float> rows = OwnRows(batch_rows);
  if (compute.pooled) TakePooled(rows, encoder);
  if (!compute.wants_hidden_states) return;
  answer_.hidden_states = MakeTensor(compute.hidden_shape());
  if (!answer_.hidden_states) return;
  if (compute.query_tokens) return SelectRows(*compute.query_tokens, rows, *answer_.hidden_states);
  ScatterRows(compute.layout, rows, *answer_.hidden_states);
}

void BatchJob::TakePooled(MatrixView<const float> rows, const Encoder& encoder) {
  const TokenLayout& layout = request().layout;
  const PooledOutput& pooled = *request().pooled;
  answer_.pooled = MakeTensor(request().pooled_shape());
  if (!answer_.pooled) return;
  std::vector<float> vector(pooled.width);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const MatrixView<const float> own = rows.Rows(layout.cu_seqlens[b], layout.length(b));
    absl::Span<const int32_t> positions;
    if (!layout.leading) positions = layout.positions_of(b);
    if (pooled.classifies) {
      Classify(encoder, own, positions, absl::MakeSpan(vector));
    } else if (pooled.modes.empty()) {
      PoolAsDescribed(encoder, own, positions, absl::MakeSpan(vector));
    } else {
      Pool(pooled.modes, own, positions, absl::MakeSpan(vector));
    }
    if (pooled.normalize) NormalizeToUnitLength(absl::MakeSpan(vector));
    answer_.pooled->Write(b * pooled.width, vector.data(), pooled.width);
  }
}

MatrixView<const float> BatchJob::OwnRows(MatrixView<const float> batch_rows) const {
  return batch_rows.Rows(first_row_, request().layout.tokens());
}

void BatchJob::Finish(const BatchTimings& timings, MemoryStore& memories) {
  if (!status_.ok()) return Fail(status_);
  if (const std::optional<Registration>& made = request().registration) {
    answer_.ticket = memories.Add(made->memory, made->age);
  }
  const absl::Duration queued = timings.started - job_->enqueued;
  v1::Execution& execution = answer_.execution;
  execution.set_queue_ns(absl::ToInt64Nanoseconds(queued));
  execution.set_copy_ns(absl::ToInt64Nanoseconds(timings.copy));
  execution.set_compute_ns(absl::ToInt64Nanoseconds(timings.compute));
  execution.set_tokens(job_->tokens);
  execution.set_truncated_tokens(request().truncated_tokens);
  execution.set_batch_tokens(timings.tokens);
  execution.set_batch_requests(timings.requests);
  SetComputeType(request().model->encoder->mode().type, execution);
  std::exchange(job_, nullptr)->Finish(std::move(answer_), queued);
}

void BatchJob::Fail(const absl::Status& status) { std::exchange(job_, nullptr)->Fail(status); }

}  // namespace attendant::server
