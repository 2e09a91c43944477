#include "server/execution/batch_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/rounding.h"
#include "engine/base/shape.h"
#include "engine/kernels/convert.h"
#include "engine/layers/pooling.h"
#include "server/base/fault.h"
#include "server/models/compute_dtype.h"
#include "server/request/request_slice.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// The tokens that a worker makes vectors of at a time.
constexpr int64_t kTileTokens = 16;

// The index of `layer` in the list, if it is there.
std::optional<size_t> IndexOf(const std::vector<int64_t>& layers, int64_t layer) {
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end()) return std::nullopt;
  return found - layers.begin();
}

// The tensor in an optional one, which is empty at first.
ResponseTensor& TensorIn(std::optional<ResponseTensor>& tensor) {
  return tensor ? *tensor : tensor.emplace();
}

// The tensor of one of the layers that were asked for.
ResponseTensor& TensorIn(std::vector<std::pair<int64_t, ResponseTensor>>& tensors, size_t layers,
                         size_t index, int64_t layer) {
  tensors.resize(layers);  // once: no part finds its tensor moved
  tensors[index].first = layer;
  return tensors[index].second;
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
  if (compute.bias) {
    absl::StatusOr<GatheredBias> bias =
        GatheredBias::Gather(*compute.bias, compute.layout, first_sequence_);
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

ResponseTensor* BatchJob::MakeOnce(absl::FunctionRef<ResponseTensor&(Response&)> find,
                                   std::vector<int64_t> shape, DataType dtype, bool sparse) {
  ResponseTensor* found = nullptr;
  job_->ChangeResponse([&](Response& response) {
    ResponseTensor& tensor = find(response);
    if (tensor.elements() == 0) {
      absl::StatusOr<ResponseTensor> made = ResponseTensor::Make(std::move(shape), dtype);
      if (!made.ok()) return status_.Update(made.status());
      tensor = *std::move(made);
      if (sparse) tensor.WriteZeros(0, tensor.elements());
    }
    found = &tensor;
  });
  return found;
}

ResponseTensor* BatchJob::MakeRows(absl::FunctionRef<ResponseTensor&(Response&)> find,
                                   std::vector<int64_t> shape) {
  const ComputeRequest& whole = job_->request();
  const bool padded = whole.layout.rows > whole.layout.tokens();
  return MakeOnce(find, std::move(shape), whole.outputs.dtype, part_ && padded);
}

void BatchJob::TakeProbabilities(int64_t layer) {
  const std::optional<size_t> index = IndexOf(request().outputs.attention.layers, layer);
  if (index) Take([&] { PlaceAttention(layer, *index); });
}

void BatchJob::PlaceAttention(int64_t layer, size_t index) {
  const ComputeRequest& compute = request();
  const int64_t heads = compute.description().heads_at(layer);
  const DenseProbabilities dense = {compute.layout,  compute.key_layout(),
                                    heads,           probabilities_.data(),
                                    first_sequence_, compute.key_sequence(0)};
  if (compute.outputs.attention.weighted_values) {
    const int64_t width = heads * compute.description().layer.attention.value_width;
    ResponseTensor* target = MakeOnce(
        [](Response& response) -> ResponseTensor& { return TensorIn(response.weighted_values); },
        job_->request().weighted_values_shape(layer), compute.outputs.dtype);
    if (target == nullptr) return;
    ScatterWeightedValues(dense, {values_.data(), compute.layout.tokens(), width, width}, *target);
  }
  if (compute.outputs.attention.probabilities) PlaceProbabilities(layer, index, dense);
}

void BatchJob::PlaceProbabilities(int64_t layer, size_t index, DenseProbabilities dense) {
  const Outputs& outputs = request().outputs;
  const std::vector<int64_t> shape = job_->request().probabilities_shape(layer);
  const size_t layers = outputs.attention.layers.size();
  ResponseTensor* target = MakeOnce(
      [&](Response& response) -> ResponseTensor& {
        return TensorIn(response.probabilities, layers, index, layer);
      },
      shape, outputs.dtype);
  if (target == nullptr) return;
  if (outputs.attention.form == AttentionForm::kTopKeys) {
    ResponseTensor* keys = MakeOnce(
        [&](Response& response) -> ResponseTensor& {
          return TensorIn(response.attention_keys, layers, index, layer);
        },
        shape, DataType::kInt32);
    if (keys != nullptr) ScatterTopKeys(dense, *target, *keys);
  } else if (outputs.attention.form == AttentionForm::kHeadMean) {
    ScatterProbabilities(AverageHeads(dense), *target);
  } else {
    ScatterProbabilities(dense, *target);
  }
}

void BatchJob::TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows) {
  const std::vector<int64_t>& layers = request().outputs.intermediate_layers;
  const std::optional<size_t> index = IndexOf(layers, layer);
  if (!index) return;
  Take([&] {
    ResponseTensor* target = MakeRows(
        [&](Response& response) -> ResponseTensor& {
          return TensorIn(response.intermediate, layers.size(), *index, layer);
        },
        job_->request().rows_shape());
    if (target != nullptr) PlaceRows(batch_rows, *target);
  });
}

void BatchJob::PlaceRows(MatrixView<const float> batch_rows, ResponseTensor& target) const {
  const TokenLayout& layout = request().layout;
  if (part_) return WriteKeptRows(layout, RowsOf(batch_rows), target);
  ScatterRows(layout, RowsOf(batch_rows), target);
}

void BatchJob::TakeResult(MatrixView<const float> batch_rows) {
  Take([&] { PlaceResult(batch_rows); });
}

void BatchJob::PlaceResult(MatrixView<const float> batch_rows) {
  const ComputeRequest& whole = job_->request();
  const DataType dtype = whole.outputs.dtype;
  if (whole.outputs.pooled) {
    pooled_ =
        MakeOnce([](Response& response) -> ResponseTensor& { return TensorIn(response.pooled); },
                 whole.pooled_shape(), dtype);
  }
  if (whole.outputs.token_vectors) {
    token_vectors_ =
        AlignedBuffer<float>(request().layout.tokens() * whole.token_vectors_shape().back());
  }
  if (!whole.outputs.hidden_states) return;
  const auto hidden_states = [](Response& response) -> ResponseTensor& {
    return TensorIn(response.hidden_states);
  };
  if (const auto& tokens = request().outputs.hidden_states->tokens) {
    ResponseTensor* target = MakeOnce(hidden_states, whole.hidden_shape(), dtype, true);
    if (target != nullptr) WriteSelectedRows(*tokens, RowsOf(batch_rows), *target);
  } else {
    ResponseTensor* target = MakeRows(hidden_states, whole.hidden_shape());
    if (target != nullptr) PlaceRows(batch_rows, *target);
  }
}

void BatchJob::Pool(int64_t sequence, MatrixView<const float> batch_rows, const Encoder& encoder,
                    std::vector<float>& vector) {
  if (pooled_ == nullptr) return;
  const TokenLayout& layout = request().layout;
  const PooledOutput& pooled = *request().outputs.pooled;
  const int64_t width = pooled_->dim(1);
  vector.resize(width);
  const absl::Span<float> target = absl::MakeSpan(vector);
  const int64_t length = layout.length(sequence), skipped = pooled.PromptOf(sequence, length);
  const MatrixView<const float> own =
      RowsOf(batch_rows).Rows(layout.cu_seqlens[sequence] + skipped, length - skipped);
  absl::Span<const int32_t> positions;
  if (!layout.leading || skipped > 0) positions = layout.positions_of(sequence).subspan(skipped);
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

int64_t BatchJob::tiles_of_tokens() const {
  return token_vectors_.size() == 0 ? 0 : CeilDivide(request().layout.tokens(), kTileTokens);
}

void BatchJob::MakeTokenVectors(int64_t tile, MatrixView<const float> batch_rows,
                                const Encoder& encoder) {
  const MatrixView<const float> rows = RowsOf(batch_rows);
  const int64_t width = request().token_vectors_shape().back();
  const TokenVectorsOutput& wanted = *request().outputs.token_vectors;
  const KeptIds* ids = std::get_if<KeptIds>(&request().input);
  const int64_t begin = tile * kTileTokens, end = std::min(rows.rows, begin + kTileTokens);
  for (int64_t r = begin; r < end; ++r) {
    const absl::Span<float> target(token_vectors_.data() + r * width, static_cast<size_t>(width));
    if (ids != nullptr && wanted.Skips(ids->words[r])) {
      std::fill(target.begin(), target.end(), 0.0f);
      continue;
    }
    ApplyTokenHead(encoder, {rows.row(r), static_cast<size_t>(rows.cols)}, target);
    if (wanted.normalize) NormalizeToUnitLength(target);
  }
}

void BatchJob::PlaceTokenVectors() {
  const std::vector<int64_t> shape = job_->request().token_vectors_shape();
  ResponseTensor* target = MakeRows(
      [](Response& response) -> ResponseTensor& { return TensorIn(response.token_vectors); },
      shape);
  if (target == nullptr) return;
  const MatrixView<const float> made = {token_vectors_.data(), request().layout.tokens(),
                                        shape.back(), shape.back()};
  if (part_) return WriteKeptRows(request().layout, made, *target);
  ScatterRows(request().layout, made, *target);
}

void BatchJob::AppendVocabularySequences(std::vector<VocabularySequence>& sequences) {
  if (!request().outputs.sparse) return;
  const TokenLayout& layout = request().layout;
  const int64_t width = request().sparse_shape().back();
  Take([&] {
    sequences.reserve(sequences.size() + layout.sequences);
    sparse_ = AlignedBuffer<float>(layout.sequences * width);
    for (int64_t b = 0; b < layout.sequences; ++b) {
      sequences.push_back({first_row_ + layout.cu_seqlens[b],
                           layout.length(b),
                           {sparse_.data() + b * width, static_cast<size_t>(width)}});
    }
  });
}

void BatchJob::PlaceSparse() {
  const ComputeRequest& whole = job_->request();
  const int64_t width = whole.sparse_shape().back();
  auto vectors = NonZeros({sparse_.data(), request().sequences(), width, width});
  job_->ChangeResponse([&](Response& response) {
    if (!response.sparse) response.sparse.emplace(whole.sequences());
    status_.Update(response.sparse->Take(first_sequence_, std::move(vectors), whole.outputs.dtype));
  });
}

MatrixView<const float> BatchJob::RowsOf(MatrixView<const float> batch_rows) const {
  return batch_rows.Rows(first_row_, request().layout.tokens());
}

void BatchJob::Finish(const BatchReport& report) {
  if (request().outputs.token_vectors) Take([&] { PlaceTokenVectors(); });
  if (request().outputs.sparse) Take([&] { PlaceSparse(); });
  Take([&] {
    v1::Execution execution = report.ExecutionOf(*job_, job_->request().truncated_tokens);
    job_->ChangeResponse([&](Response& shared) {
      AddEarlierParts(shared.execution, execution);
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
