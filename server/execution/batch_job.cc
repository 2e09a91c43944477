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

// The index of `layer` in the list, if it is there.
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
  return InvalidField(absl::StrCat(field, ShapeToString(index)), "a finite number",
                      absl::StrCat(values[column]));
}

}  // namespace

absl::Status BatchJob::Gather(EncoderRun& run, int64_t first_row, const CrossKvRange& place,
                              bool reject_nonfinite) {
  first_row_ = first_row;
  const ComputeRequest& compute = request();
  response_.intermediate.resize(compute.outputs.intermediate_layers.size());
  const AttentionOutput& attention = compute.outputs.attention;
  if (attention.probabilities) response_.probabilities.resize(attention.layers.size());
  if (attention.form == AttentionForm::kTopKeys) {
    response_.attention_keys.resize(response_.probabilities.size());
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
  if (const FeatureRows* features = std::get_if<FeatureRows>(&compute.input)) {
    const int64_t count = features->layout.tokens();
    absl::Status status = GatherRows({"features", features->tensor, features->layout},
                                     run.FeatureRows(first_row_, count), reject_nonfinite);
    if (!status.ok()) return status;
    run.ProjectFeatures(first_row_, count);
    AddFronts(features->layout, rows, run);
    return absl::OkStatus();
  }
  absl::Status status =
      GatherRows({"hidden_states", std::get<CheckedTensor>(compute.input), compute.layout}, rows,
                 reject_nonfinite);
  if (status.ok() && compute.cross_kv_rows()) status = GatherCrossKv(run, place, reject_nonfinite);
  return status;
}

absl::Status BatchJob::GatherCrossKv(EncoderRun& run, const CrossKvRange& place,
                                     bool reject_nonfinite) {
  const CrossKvRows& input = *request().cross_kv_rows();
  const int64_t count = input.layout.tokens();
  first_cross_kv_row_ = place.rows;
  absl::Status status =
      GatherRows({"memory.hidden_states", input.hidden_states, input.layout},
                 run.key_input().Rows(place.first_key + place.rows, count), reject_nonfinite);
  if (!status.ok() || !input.values) return status;
  return GatherRows({"memory.values", *input.values, input.layout},
                    run.value_input().Rows(place.first_value + place.rows, count),
                    reject_nonfinite);
}

CrossKv BatchJob::CrossKvOf(const CrossKv& projected, int64_t sequence) const {
  const RegisteredCrossKv* registered = request().registered();
  const TokenLayout& layout = request().key_layout();
  const int64_t own = request().key_sequence(sequence), count = layout.length(own);
  const int64_t first = layout.cu_seqlens[own] + (registered ? 0 : first_cross_kv_row_);
  CrossKv own_kv;
  own_kv.keys = (registered ? registered->keys() : projected.keys).Rows(first, count);
  own_kv.values = (registered ? registered->values() : projected.values).Rows(first, count);
  if (!layout.leading) own_kv.positions = layout.positions_of(own);
  return own_kv;
}

void BatchJob::KeepCrossKv(const CrossKv& projected) {
  const Registration* made = std::get_if<Registration>(&request().operation);
  if (made == nullptr) return;
  RegisteredCrossKv& kept = *made->cross_kv;
  const auto copy = [&](MatrixView<const float> from, MatrixView<float> to) {
    for (int64_t r = 0; r < to.rows; ++r) {
      std::copy_n(from.row(first_cross_kv_row_ + r), to.cols, to.row(r));
    }
  };
  copy(projected.keys, kept.keys());
  copy(projected.values, kept.values());
}

// From the last sequence to the first, features make room for what goes before them.
void BatchJob::AddFronts(const TokenLayout& features, MatrixView<float> rows, EncoderRun& run) {
  const TokenLayout& layout = request().layout;
  for (int64_t b = layout.sequences - 1; b >= 0; --b) {
    const int64_t length = features.length(b);
    if (length == 0) continue;
    const float* from = rows.row(features.cu_seqlens[b]);
    float* to = rows.row(layout.cu_seqlens[b + 1] - length);
    std::memmove(to, from, static_cast<size_t>(length * rows.stride) * sizeof(float));
    run.AddPrefixTokens(features.positions_of(b), first_row_ + layout.cu_seqlens[b]);
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
  const int64_t heads = request().description().layer.attention.heads;
  if (gates.empty()) return {};
  return {gates.data(), static_cast<int64_t>(gates.size()) == heads ? 0 : heads};
}

float* BatchJob::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const ComputeRequest& compute = request();
  if (!IndexOf(compute.outputs.attention.layers, layer)) return nullptr;
  if (pairs_before_.empty()) {
    int64_t pairs = 0;
    for (int64_t b = 0; b < compute.layout.sequences; ++b) {
      pairs_before_.push_back(pairs);
      pairs += compute.pairs(b);
    }
    probabilities_ = AlignedBuffer<float>(compute.description().layer.attention.heads * pairs);
  }
  return probabilities_.data() + compute.description().heads_at(layer) * pairs_before_[sequence];
}

void BatchJob::TakeValues(MatrixView<const float> batch_rows) {
  if (!request().outputs.attention.weighted_values) return;
  const MatrixView<const float> rows = OwnRows(batch_rows);
  values_.clear();
  for (int64_t r = 0; r < rows.rows; ++r) {
    values_.insert(values_.end(), rows.row(r), rows.row(r) + rows.cols);
  }
}

std::optional<ResponseTensor> BatchJob::MakeTensor(std::vector<int64_t> shape) {
  return MakeTensor(std::move(shape), request().outputs.dtype);
}

std::optional<ResponseTensor> BatchJob::MakeTensor(std::vector<int64_t> shape, DataType dtype) {
  auto tensor = ResponseTensor::Make(std::move(shape), dtype);
  if (tensor.ok()) return *std::move(tensor);
  status_.Update(tensor.status());
  return std::nullopt;
}

void BatchJob::TakeProbabilities(int64_t layer) {
  const ComputeRequest& compute = request();
  const std::optional<size_t> index = IndexOf(compute.outputs.attention.layers, layer);
  if (!index) return;
  const int64_t heads = compute.description().heads_at(layer);
  const DenseProbabilities dense = {compute.layout, compute.key_layout(), heads,
                                    probabilities_.data()};
  if (compute.outputs.attention.weighted_values) {
    const int64_t width = heads * compute.description().layer.attention.value_width;
    response_.weighted_values = MakeTensor(compute.weighted_values_shape(layer));
    if (!response_.weighted_values) return;
    ScatterWeightedValues(dense, {values_.data(), compute.layout.tokens(), width, width},
                          *response_.weighted_values);
  }
  if (compute.outputs.attention.probabilities) PlaceProbabilities(layer, *index, dense);
}

void BatchJob::PlaceProbabilities(int64_t layer, size_t index, DenseProbabilities dense) {
  const ComputeRequest& compute = request();
  const std::vector<int64_t> shape = compute.probabilities_shape(layer);
  std::optional<ResponseTensor> target = MakeTensor(shape);
  if (!target) return;
  if (compute.outputs.attention.form == AttentionForm::kTopKeys) {
    std::optional<ResponseTensor> keys = MakeTensor(shape, DataType::kInt32);
    if (!keys) return;
    ScatterTopKeys(dense, *target, *keys);
    response_.attention_keys[index] = {layer, *std::move(keys)};
  } else if (compute.outputs.attention.form == AttentionForm::kHeadMean) {
    ScatterProbabilities(AverageHeads(dense), *target);
  } else {
    ScatterProbabilities(dense, *target);
  }
  response_.probabilities[index] = {layer, *std::move(target)};
}

void BatchJob::TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows) {
  const ComputeRequest& compute = request();
  const std::optional<size_t> index = IndexOf(compute.outputs.intermediate_layers, layer);
  if (!index) return;
  std::optional<ResponseTensor> target = MakeTensor(compute.rows_shape());
  if (!target) return;
  ScatterRows(compute.layout, OwnRows(batch_rows), *target);
  response_.intermediate[*index] = {layer, *std::move(target)};
}

void BatchJob::TakeResult(MatrixView<const float> batch_rows, const Encoder& encoder) {
  const ComputeRequest& compute = request();
  const MatrixView<const float> rows = OwnRows(batch_rows);
  if (compute.outputs.pooled) TakePooled(rows, encoder);
  if (!compute.outputs.hidden_states) return;
  response_.hidden_states = MakeTensor(compute.hidden_shape());
  if (!response_.hidden_states) return;
  if (const auto& tokens = compute.outputs.hidden_states->tokens) {
    return SelectRows(*tokens, rows, *response_.hidden_states);
  }
  ScatterRows(compute.layout, rows, *response_.hidden_states);
}

void BatchJob::TakePooled(MatrixView<const float> rows, const Encoder& encoder) {
  const TokenLayout& layout = request().layout;
  const PooledOutput& pooled = *request().outputs.pooled;
  response_.pooled = MakeTensor(request().pooled_shape());
  if (!response_.pooled) return;
  const int64_t width = response_.pooled->dim(1);
  std::vector<float> vector(width);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const MatrixView<const float> own = rows.Rows(layout.cu_seqlens[b], layout.length(b));
    absl::Span<const int32_t> positions;
    if (!layout.leading) positions = layout.positions_of(b);
    if (const PoolingMode* mode = std::get_if<PoolingMode>(&pooled.pooling)) {
      Pool(absl::MakeConstSpan(mode, 1), own, positions, absl::MakeSpan(vector));
    } else if (std::holds_alternative<ClassifierPooling>(pooled.pooling)) {
      Classify(encoder, own, positions, absl::MakeSpan(vector));
    } else {
      PoolAsDescribed(encoder, own, positions, absl::MakeSpan(vector));
    }
    if (pooled.normalize) NormalizeToUnitLength(absl::MakeSpan(vector));
    response_.pooled->Write(b * width, vector.data(), width);
  }
}

MatrixView<const float> BatchJob::OwnRows(MatrixView<const float> batch_rows) const {
  return batch_rows.Rows(first_row_, request().layout.tokens());
}

void BatchJob::Finish(const BatchTimings& timings, CrossKvStore& store) {
  if (!status_.ok()) return Fail(status_);
  if (const Registration* made = std::get_if<Registration>(&request().operation)) {
    response_.ticket = store.Add(made->cross_kv, made->age);
  }
  const absl::Duration queued = timings.started - job_->enqueued;
  v1::Execution& execution = response_.execution;
  execution.set_queue_ns(absl::ToInt64Nanoseconds(queued));
  execution.set_copy_ns(absl::ToInt64Nanoseconds(timings.copy));
  execution.set_compute_ns(absl::ToInt64Nanoseconds(timings.compute));
  execution.set_tokens(job_->tokens);
  execution.set_truncated_tokens(request().truncated_tokens);
  execution.set_batch_tokens(timings.tokens);
  execution.set_batch_requests(timings.requests);
  SetComputeType(request().span.model->encoder->mode().type, execution);
  std::exchange(job_, nullptr)->Finish(std::move(response_), queued);
}

void BatchJob::Fail(const absl::Status& status) { std::exchange(job_, nullptr)->Fail(status); }

}  // namespace attendant::server
