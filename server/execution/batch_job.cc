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
#include "server/execution/fault.h"
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

// Makes the execution of a part that of all parts so far: their times, the wait of the first one,
// and the largest batch.
void AddEarlierParts(const v1::Execution& earlier, v1::Execution& sum) {
  if (earlier.batch_requests() == 0) return;
  sum.set_queue_ns(std::min(sum.queue_ns(), earlier.queue_ns()));
  sum.set_copy_ns(sum.copy_ns() + earlier.copy_ns());
  sum.set_compute_ns(sum.compute_ns() + earlier.compute_ns());
  if (earlier.batch_tokens() < sum.batch_tokens()) return;
  sum.set_batch_tokens(earlier.batch_tokens());
  sum.set_batch_requests(earlier.batch_requests());
}

}  // namespace

BatchJob::BatchJob(const Piece<ServiceJob>& piece, bool reject_nonfinite)
    : job_(piece.job.compute()),
      first_sequence_(piece.first_sequence),
      gatherer_(reject_nonfinite) {
  if (piece.sequences == job_->request().sequences()) return;
  part_ = SequencesOf(job_->request(), piece.first_sequence, piece.sequences);
}

absl::Status BatchJob::Gather(EncoderRun& run, int64_t first_row, const CrossKvRange& place) {
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
    absl::Status status = gatherer_.Gather({"features", features->tensor, features->layout},
                                           run.FeatureRows(first_row_, count));
    if (!status.ok()) return status;
    run.ProjectFeatures(first_row_, count);
    AddPrefixTokens(features->layout, rows, run);
    return absl::OkStatus();
  }
  absl::Status status = gatherer_.Gather(
      {"hidden_states", std::get<CheckedTensor>(compute.input), compute.layout}, rows);
  const CrossKvRows* cross_kv_rows = compute.cross_kv_rows();
  if (!status.ok() || cross_kv_rows == nullptr) return status;
  first_cross_kv_row_ = place.rows;
  return gatherer_.GatherCrossKv(*cross_kv_rows, place, run);
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

// From the last sequence to the first, features make room for the prefix tokens before them.
void BatchJob::AddPrefixTokens(const TokenLayout& features, MatrixView<float> rows,
                               EncoderRun& run) {
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

HeadGates BatchJob::gates() const {
  const std::vector<float>& gates = request().head_gates;
  const int64_t heads = request().description().layer.attention.heads;
  if (gates.empty()) return {};
  return {gates.data(), static_cast<int64_t>(gates.size()) == heads ? 0 : heads};
}

template <typename Step>
void BatchJob::Take(Step step) {
  if (status_.ok()) status_.Update(Guarded(step));
}

float* BatchJob::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const ComputeRequest& compute = request();
  if (!IndexOf(compute.outputs.attention.layers, layer)) return nullptr;
  Take([&] {
    if (!pairs_before_.empty()) return;
    std::vector<int64_t> pairs_before;
    int64_t pairs = 0;
    for (int64_t b = 0; b < compute.layout.sequences; ++b) {
      pairs_before.push_back(pairs);
      pairs += compute.pairs(b);
    }
    probabilities_ = AlignedBuffer<float>(compute.description().layer.attention.heads * pairs);
    pairs_before_ = std::move(pairs_before);
  });
  if (!status_.ok()) return nullptr;
  return probabilities_.data() + compute.description().heads_at(layer) * pairs_before_[sequence];
}

void BatchJob::TakeValues(MatrixView<const float> batch_rows) {
  if (!request().outputs.attention.weighted_values) return;
  const MatrixView<const float> rows = RowsOf(batch_rows);
  Take([&] {
    values_.clear();
    for (int64_t r = 0; r < rows.rows; ++r) {
      values_.insert(values_.end(), rows.row(r), rows.row(r) + rows.cols);
    }
  });
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
  const std::optional<size_t> index = IndexOf(request().outputs.attention.layers, layer);
  if (index) Take([&] { PlaceAttention(layer, *index); });
}

void BatchJob::PlaceAttention(int64_t layer, size_t index) {
  const ComputeRequest& compute = request();
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
  if (compute.outputs.attention.probabilities) PlaceProbabilities(layer, index, dense);
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
  Take([&] {
    std::optional<ResponseTensor> target = MakeTensor(compute.rows_shape());
    if (!target) return;
    ScatterRows(compute.layout, RowsOf(batch_rows), *target);
    response_.intermediate[*index] = {layer, *std::move(target)};
  });
}

// Parts write kept rows alone, so that the first one makes the zeros of padding.
void BatchJob::MakeResult(Response& response) {
  const ComputeRequest& whole = job_->request();
  if (whole.outputs.pooled && !response.pooled) response.pooled = MakeTensor(whole.pooled_shape());
  if (whole.outputs.hidden_states && !response.hidden_states) {
    response.hidden_states = MakeTensor(whole.hidden_shape());
    const bool padded = whole.layout.rows > whole.layout.tokens();
    if (part_ && padded && response.hidden_states) {
      response.hidden_states->WriteZeros(0, response.hidden_states->elements());
    }
  }
  if (response.pooled) pooled_ = &*response.pooled;
  if (response.hidden_states) hidden_states_ = &*response.hidden_states;
}

void BatchJob::TakeResult(MatrixView<const float> batch_rows) {
  Take([&] { PlaceResult(batch_rows); });
}

void BatchJob::PlaceResult(MatrixView<const float> batch_rows) {
  const ComputeRequest& compute = request();
  const MatrixView<const float> rows = RowsOf(batch_rows);
  if (part_) {
    job_->ChangeResponse([this](Response& shared) { MakeResult(shared); });
  } else {
    MakeResult(response_);
  }
  if (hidden_states_ == nullptr) return;
  if (part_) return WriteKeptRows(compute.layout, rows, *hidden_states_);
  if (const auto& tokens = compute.outputs.hidden_states->tokens) {
    return SelectRows(*tokens, rows, *hidden_states_);
  }
  ScatterRows(compute.layout, rows, *hidden_states_);
}

void BatchJob::Pool(int64_t sequence, MatrixView<const float> batch_rows, const Encoder& encoder,
                    std::vector<float>& vector) {
  if (pooled_ == nullptr) return;
  const TokenLayout& layout = request().layout;
  const PooledOutput& pooled = *request().outputs.pooled;
  const int64_t width = pooled_->dim(1);
  vector.resize(width);
  const absl::Span<float> target = absl::MakeSpan(vector);
  const MatrixView<const float> own =
      RowsOf(batch_rows).Rows(layout.cu_seqlens[sequence], layout.length(sequence));
  absl::Span<const int32_t> positions;
  if (!layout.leading) positions = layout.positions_of(sequence);
  if (const PoolingMode* mode = std::get_if<PoolingMode>(&pooled.pooling)) {
    attendant::Pool(absl::MakeConstSpan(mode, 1), own, positions, target);
  } else if (std::holds_alternative<ClassifierPooling>(pooled.pooling)) {
    Classify(encoder, own, positions, target);
  } else {
    PoolAsDescribed(encoder, own, positions, target);
  }
  if (pooled.normalize) NormalizeToUnitLength(target);
  pooled_->Write((first_sequence_ + sequence) * width, vector.data(), width);
}

MatrixView<const float> BatchJob::RowsOf(MatrixView<const float> batch_rows) const {
  return batch_rows.Rows(first_row_, request().layout.tokens());
}

void BatchJob::Finish(const BatchReport& report) {
  Take([&] {
    v1::Execution execution = report.ExecutionOf(*job_, job_->request().truncated_tokens);
    job_->ChangeResponse([&](Response& shared) {
      if (!part_) {
        shared = std::move(response_);
      } else {
        AddEarlierParts(shared.execution, execution);
      }
      shared.execution = std::move(execution);
    });
  });
  if (!status_.ok()) return Fail(status_);
  EndPart(report.QueuedOf(*job_), absl::OkStatus());
}

void BatchJob::Fail(const absl::Status& status) { EndPart(absl::ZeroDuration(), status); }

void BatchJob::EndPart(absl::Duration queued, const absl::Status& status) {
  const int64_t sequences = request().sequences();
  std::exchange(job_, nullptr)->EndPart(sequences, queued, status);
}

}  // namespace attendant::server
