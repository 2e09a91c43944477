#include "server/execution/entry_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/convert.h"
#include "server/request/request_slice.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// A tensor of the request, and its kept rows.
struct NamedRows {
  const char* field;
  const CheckedTensor& tensor;
  const TokenLayout& layout;
  // If not null, the tensor holds images [B, 3, H, W], and each row is a patch.
  const PatchEmbeddingShape* patches = nullptr;
};

// Returns the place in the images of a number in the row of a patch.
std::vector<int64_t> PixelOf(const PatchEmbeddingShape& shape, int64_t row, int64_t column) {
  const int64_t grid = shape.grid(), patch = shape.patch_size;
  const int64_t place = row % (grid * grid), pixel = column % (patch * patch);
  return {row / (grid * grid), column / (patch * patch), place / grid * patch + pixel / patch,
          place % grid * patch + pixel % patch};
}

absl::Status RefuseNonfinite(const NamedRows& rows, int64_t row, const float* values) {
  const CheckedTensor& tensor = rows.tensor;
  int64_t column = 0;
  while (std::isfinite(values[column])) ++column;
  std::vector<int64_t> index = {row, column};
  if (tensor.shape.size() == 3) index = {row / tensor.dim(1), row % tensor.dim(1), column};
  if (rows.patches != nullptr) index = PixelOf(*rows.patches, row, column);
  return InvalidField(absl::StrCat(rows.field, ShapeToString(index)), "a finite number",
                      absl::StrCat(values[column]));
}

// Reads the pixels of a patch, by channel, line and column.
void ReadPatch(const CheckedTensor& images, const PatchEmbeddingShape& shape, int64_t row,
               float* pixels) {
  const int64_t grid = shape.grid(), size = shape.image_size, patch = shape.patch_size;
  const int64_t image = row / (grid * grid), place = row % (grid * grid);
  const int64_t first = (place / grid * size + place % grid) * patch;
  for (int64_t line = 0; line < 3 * patch; ++line) {
    const int64_t channel = image * 3 + line / patch;
    const int64_t from = (channel * size + line % patch) * size + first;
    images.data.ReadFloats(images.dtype, from, patch, pixels + line * patch);
  }
}

// As GatherRows, for the query's vectors.
absl::Status CheckQuery(const std::vector<float>& query, NonfinitePolicy policy, bool& nonfinite) {
  if (AllFinite(query.data(), std::ssize(query))) return absl::OkStatus();
  nonfinite = true;
  if (policy == NonfinitePolicy::kPropagate) return absl::OkStatus();
  return InvalidField("query_vectors", "finite numbers", "NaN or infinity");
}

// Copies the kept rows to `rows`, and sets `nonfinite` if a value is not finite. With kReject,
// returns INVALID_ARGUMENT for the first such value.
absl::Status GatherRows(const NamedRows& from, NonfinitePolicy policy, MatrixView<float> rows,
                        bool& nonfinite) {
  const CheckedTensor& tensor = from.tensor;
  int64_t kept = 0;
  for (const RowRun& run : from.layout.runs) {
    for (int64_t i = 0; i < run.count; ++i, ++kept) {
      // Row by row, so that the check finds the row in the cache.
      float* row = rows.row(kept);
      if (from.patches != nullptr) {
        ReadPatch(tensor, *from.patches, run.first + i, row);
      } else {
        tensor.data.ReadFloats(tensor.dtype, (run.first + i) * rows.cols, rows.cols, row);
      }
      if (AllFinite(row, rows.cols)) continue;
      nonfinite = true;
      if (policy == NonfinitePolicy::kPropagate) continue;
      return RefuseNonfinite(from, run.first + i, row);
    }
  }
  return absl::OkStatus();
}

// Sums up the executions of all slices so far: their times, the wait of the first, and the largest
// batch.
void AddEarlierSlices(const v1::Execution& earlier, v1::Execution& sum) {
  if (earlier.batch_requests() == 0) return;
  sum.set_queue_ns(std::min(sum.queue_ns(), earlier.queue_ns()));
  sum.set_copy_ns(sum.copy_ns() + earlier.copy_ns());
  sum.set_compute_ns(sum.compute_ns() + earlier.compute_ns());
  if (earlier.batch_tokens() < sum.batch_tokens()) return;
  sum.set_batch_tokens(earlier.batch_tokens());
  sum.set_batch_requests(earlier.batch_requests());
}

void CopyRows(MatrixView<const float> from, MatrixView<float> to) {
  for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(r), to.cols, to.row(r));
}

}  // namespace

EntryRun::EntryRun(std::shared_ptr<ComputeJob> job, const BatchEntry& entry,
                   const ServiceContext& context)
    : context_(context), job_(std::move(job)) {
  if (entry.sequences == job_->request().sequences()) return;
  slice_ = SequencesOf(job_->request(), entry.first_sequence, entry.sequences);
}

absl::Status EntryRun::Gather(EncoderRun& run, int64_t first_row, const CrossKvRange& place) {
  const auto gather = [&](const NamedRows& from, MatrixView<float> to) {
    return GatherRows(from, context_.limits.nonfinite, to, nonfinite_);
  };
  first_row_ = first_row;
  const ComputeRequest& compute = request();
  if (compute.bias) {
    ASSIGN_OR_RETURN(bias_,
                     GatheredBias::Gather(*compute.bias, compute.layout, compute.first_sequence));
  }
  if (const auto& vectors = compute.outputs.token_vectors; vectors && vectors->query != nullptr) {
    RETURN_IF_ERROR(CheckQuery(*vectors->query, context_.limits.nonfinite, nonfinite_));
  }
  if (const KeptIds* ids = std::get_if<KeptIds>(&compute.input)) {
    TokenIds view = ids->view();
    view.cu_seqlens = compute.layout.cu_seqlens;
    run.Embed(view, first_row);
    return absl::OkStatus();
  }
  const MatrixView<float> rows = run.input().Rows(first_row, compute.layout.tokens());
  if (const TokenRows* features = std::get_if<TokenRows>(&compute.input)) {
    const int64_t count = features->layout.tokens();
    const PatchEmbeddingShape& patches = *compute.description().patch_embedding;
    RETURN_IF_ERROR(gather(
        {"features", features->tensor, features->layout, features->are_pixels ? &patches : nullptr},
        run.FeatureRows(first_row_, count)));
    run.ProjectFeatures(first_row_, count);
    AddPrefixTokens(features->layout, rows, run);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      gather({"hidden_states", std::get<CheckedTensor>(compute.input), compute.layout}, rows));
  const CrossKvRows* memory = compute.cross_kv_rows();
  if (memory == nullptr) return absl::OkStatus();
  first_cross_kv_row_ = place.rows;
  const int64_t count = memory->layout.tokens();
  RETURN_IF_ERROR(gather({"memory.hidden_states", memory->hidden_states, memory->layout},
                         run.key_input().Rows(place.first_key + place.rows, count)));
  if (!memory->values) return absl::OkStatus();
  return gather({"memory.values", *memory->values, memory->layout},
                run.value_input().Rows(place.first_value + place.rows, count));
}

CrossKv EntryRun::CrossKvOf(const CrossKv& projected, int64_t sequence) const {
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

void EntryRun::TakeCrossKv(const CrossKv& projected) {
  RegisteredCrossKv& kept = *request().registration()->cross_kv;
  const int64_t count = kept.origin().layout.tokens();
  CopyRows(projected.keys.Rows(first_cross_kv_row_, count), kept.keys());
  CopyRows(projected.values.Rows(first_cross_kv_row_, count), kept.values());
}

// From the last sequence to the first, features make room for the prefix tokens before them.
void EntryRun::AddPrefixTokens(const TokenLayout& features, MatrixView<float> rows,
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

HeadGates EntryRun::gates() const {
  const std::vector<float>& gates = request().head_gates;
  const int64_t heads = request().description().layer.attention.heads;
  if (gates.empty()) return {};
  return {gates.data(), static_cast<int64_t>(gates.size()) == heads ? 0 : heads};
}

float* EntryRun::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const ComputeRequest& compute = request();
  if (!absl::c_linear_search(compute.outputs.attention.layers, layer)) return nullptr;
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

void EntryRun::TakeValues(MatrixView<const float> batch_rows) {
  if (!request().outputs.attention.weighted_values) return;
  const MatrixView<const float> rows = RowsOf(batch_rows);
  Take([&] {
    values_.clear();
    for (int64_t r = 0; r < rows.rows; ++r) {
      values_.insert(values_.end(), rows.row(r), rows.row(r) + rows.cols);
    }
  });
}

ResponseTensor* EntryRun::MakeOnce(OutputKind kind, int64_t layer, bool zeroed) {
  ResponseTensor* found = nullptr;
  job_->ChangeResponse([&](Response& response) {
    ResponseTensor& tensor = *response.Find(kind, layer);
    if (tensor.elements() == 0) {
      const absl::Status status = tensor.Allocate();
      if (!status.ok()) return status_.Update(status);
      if (zeroed) tensor.WriteZeros(0, tensor.elements());
    }
    found = &tensor;
  });
  return found;
}

void EntryRun::PlaceRows(MatrixView<const float> rows, OutputKind kind, int64_t layer) {
  const TokenLayout& whole = job_->request().layout;
  ResponseTensor* target = MakeOnce(kind, layer, /*zeroed=*/whole.rows > whole.tokens());
  if (target != nullptr) WriteKeptRows(request().layout, rows, *target);
}

void EntryRun::TakeProbabilities(int64_t layer) {
  if (!absl::c_linear_search(request().outputs.attention.layers, layer)) return;
  Take([&] { PlaceAttention(layer); });
}

void EntryRun::PlaceAttention(int64_t layer) {
  const ComputeRequest& compute = request();
  const int64_t heads = compute.description().heads_at(layer);
  const DenseProbabilities dense = {
      compute.layout,        compute.key_layout(),   heads,
      probabilities_.data(), compute.first_sequence, compute.key_sequence(0)};
  if (compute.outputs.attention.weighted_values) {
    const AttentionBlockShape& attention = compute.description().layer.attention;
    const int64_t of_values = attention.key_value_heads > 0 ? attention.key_value_heads : heads;
    const int64_t width = of_values * attention.value_width;
    ResponseTensor* target = MakeOnce(OutputKind::kWeightedValues, layer);
    if (target == nullptr) return;
    ScatterWeightedValues(dense, {values_.data(), compute.layout.tokens(), width, width}, *target);
  }
  if (compute.outputs.attention.probabilities) PlaceProbabilities(layer, dense);
}

void EntryRun::PlaceProbabilities(int64_t layer, DenseProbabilities dense) {
  ResponseTensor* target = MakeOnce(OutputKind::kProbabilities, layer);
  if (target == nullptr) return;
  const v1::AttentionForm form = request().outputs.attention.form;
  if (form == v1::TOP_KEYS) {
    ResponseTensor* keys = MakeOnce(OutputKind::kAttentionKeys, layer);
    if (keys != nullptr) ScatterTopKeys(dense, *target, *keys);
  } else if (form == v1::HEAD_MEAN) {
    ScatterProbabilities(AverageHeads(dense), *target);
  } else {
    ScatterProbabilities(dense, *target);
  }
}

void EntryRun::TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows) {
  if (!absl::c_linear_search(request().outputs.intermediate_layers, layer)) return;
  Take([&] { PlaceRows(RowsOf(batch_rows), OutputKind::kIntermediate, layer); });
}

void EntryRun::TakeResult(MatrixView<const float> batch_rows) {
  Take([&] { PlaceResult(batch_rows); });
}

void EntryRun::PlaceResult(MatrixView<const float> batch_rows) {
  const Outputs& outputs = request().outputs;
  if (outputs.pooled) pooled_ = MakeOnce(OutputKind::kPooled);
  if (outputs.token_vectors) {
    token_vectors_ =
        AlignedBuffer<float>(request().layout.tokens() * request().token_vectors_width());
    if (outputs.token_vectors->query) scores_ = MakeOnce(OutputKind::kScores);
  }
  if (!outputs.hidden_states) return;
  if (outputs.hidden_tokens) {
    ResponseTensor* target = MakeOnce(OutputKind::kHiddenStates, 0, /*zeroed=*/true);
    if (target != nullptr) WriteSelectedRows(*outputs.hidden_tokens, RowsOf(batch_rows), *target);
  } else {
    PlaceRows(RowsOf(batch_rows), OutputKind::kHiddenStates);
  }
}

MatrixView<const float> EntryRun::RowsOf(MatrixView<const float> batch_rows) const {
  return batch_rows.Rows(first_row_, request().layout.tokens());
}

void EntryRun::Finish(const BatchReport& report) {
  const std::optional<TokenVectorsOutput>& vectors = request().outputs.token_vectors;
  if (vectors && vectors->returned) {
    const int64_t tokens = request().layout.tokens(), width = request().token_vectors_width();
    Take([&] {
      PlaceRows({token_vectors_.data(), tokens, width, width}, OutputKind::kTokenVectors);
    });
  }
  if (late_.size() > 0) Take([&] { PlaceLateMeans(); });
  if (request().outputs.sparse) Take([&] { PlaceSparse(); });
  Take([&] {
    v1::Execution execution = report.ExecutionOf(*job_, job_->request().truncated_tokens);
    job_->ChangeResponse([&](Response& response) {
      AddEarlierSlices(response.execution, execution);
      response.execution = std::move(execution);
      if (const RegisterMemory* memory = request().registration()) {
        response.registration = context_.cross_kv.Add(memory->cross_kv, memory->age);
      }
    });
  });
  if (!status_.ok()) return Fail(status_);
  End(report.QueuedOf(*job_), absl::OkStatus());
}

void EntryRun::Fail(const absl::Status& status) { End(absl::ZeroDuration(), status); }

void EntryRun::End(absl::Duration queued, const absl::Status& status) {
  const int64_t sequences = request().sequences();
  std::exchange(job_, nullptr)->EndSlice(sequences, queued, status);
}

}  // namespace attendant::server
