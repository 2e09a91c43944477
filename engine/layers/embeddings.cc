#include "engine/layers/embeddings.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/norm.h"

namespace attendant {
namespace {

constexpr int64_t kRowsPerItem = 16;

void AddRow(const float* row, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

}  // namespace

absl::StatusOr<Embeddings> Embeddings::Load(const EmbeddingShape& shape, const LayerShape& layer,
                                            WeightLoader& loader) {
  Embeddings embeddings;
  embeddings.shape_ = shape;
  const auto read_table = [&](const char* name, int64_t rows, SharedBuffer<float>& table) {
    if (rows == 0) return absl::OkStatus();
    absl::StatusOr<AlignedBuffer<float>> read = loader.ReadTable(name, rows * shape.width);
    if (read.ok()) table = *std::move(read);
    return read.status();
  };
  absl::Status status = read_table("embeddings.word", shape.vocabulary, embeddings.word_);
  status.Update(read_table("embeddings.position", shape.positions, embeddings.position_));
  status.Update(read_table("embeddings.token_type", shape.token_types, embeddings.token_type_));
  if (!status.ok()) return status;

  if (shape.has_norm) {
    absl::StatusOr<NormParameters> norm =
        loader.ReadNorm("embeddings.norm", shape.width, layer.norm_kind, shape.norm_epsilon);
    if (!norm.ok()) return norm.status();
    embeddings.norm_ = *std::move(norm);
  }
  if (!shape.projected(layer.hidden_size)) return embeddings;

  absl::StatusOr<PackedLinear> projection =
      loader.ReadLinear("embeddings.projection", layer.hidden_size, shape.width);
  if (!projection.ok()) return projection.status();
  embeddings.projection_ = *std::move(projection);
  return embeddings;
}

void Embeddings::Embed(const TokenIds& ids, MatrixView<float> target, RunState& run) const {
  if (target.rows == 0) return;
  if (!projection_) {
    SumAndNormalize(ids, target, run.team);
    return;
  }
  // The product writes whole tiles; the rows behind `target` may be another sequence's.
  const int64_t padded_rows = PaddedRows(target.rows);
  const MatrixView<float> sums = run.activations.embedded().Rows(0, padded_rows);
  const MatrixView<float> kept_sums = sums.Rows(0, target.rows);
  const MatrixView<float> projected = run.activations.branch().Rows(0, padded_rows);
  SumAndNormalize(ids, kept_sums, run.team);
  ZeroRows(sums.Rows(target.rows, padded_rows - target.rows));
  run.Apply(*projection_, sums, projected);
  for (int64_t r = 0; r < target.rows; ++r) {
    std::copy_n(projected.row(r), target.cols, target.row(r));
  }
}

void Embeddings::SumAndNormalize(const TokenIds& ids, MatrixView<float> sums,
                                 const ThreadTeam& team) const {
  const int64_t width = shape_.width;
  const int64_t items = (sums.rows + kRowsPerItem - 1) / kRowsPerItem;
  team.ParallelFor(items, [&](int /*worker*/, int64_t item) {
    const int64_t end = std::min(sums.rows, (item + 1) * kRowsPerItem);
    for (int64_t r = item * kRowsPerItem; r < end; ++r) {
      float* sum = sums.row(r);
      std::copy_n(word_.data() + ids.words[r] * width, width, sum);
      if (shape_.token_types > 0) {
        const int64_t type = ids.token_types.empty() ? 0 : ids.token_types[r];
        AddRow(token_type_.data() + type * width, width, sum);
      }
      if (shape_.positions > 0) {
        AddRow(position_.data() + ids.positions[r] * width, width, sum);
      }
    }
  });
  if (norm_) LayerNorm(team, sums, norm_->view(), sums);
}

void Embeddings::ReserveScratch(RunState& run) const {
  if (projection_) run.gemm.Reserve(*projection_, PaddedRows(run.max_tokens));
}

absl::Status Embeddings::ReplaceNorms(WeightLoader& loader) { return loader.ReplaceNorm(norm_); }

int64_t Embeddings::bytes() const {
  return word_.bytes() + position_.bytes() + token_type_.bytes() + (norm_ ? norm_->bytes() : 0) +
         (projection_ ? projection_->bytes() : 0);
}

}  // namespace attendant
