#include "engine/layers/extras/attention_extra.h"

#include <algorithm>

#include "engine/base/thread_team.h"
#include "engine/kernels/norm/norm.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

// Returns the products of the rows of the table with `columns` columns of `linear`, from `first`
// on.
AlignedBuffer<float> Project(const PackedLinear& linear, const AlignedBuffer<float>& table,
                             int64_t rows, int64_t first, int64_t columns) {
  const int64_t in = linear.in_features(), out = linear.out_features();
  AlignedBuffer<float> projected(rows * out);
  const ThreadTeam team(1);
  GemmWorkspace workspace(team);
  workspace.Reserve(linear, PaddedRows(rows));
  workspace.Apply(linear, MatrixView<const float>{table.data(), rows, in, in},
                  MatrixView<float>{projected.data(), rows, out, out});
  AlignedBuffer<float> taken(rows * columns);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(projected.data() + r * out + first, columns, taken.data() + r * columns);
  }
  return taken;
}

// Returns a matrix without rows if the buffer is empty.
MatrixView<const float> ViewOf(const SharedBuffer<float>& buffer, int64_t cols) {
  if (buffer.size() == 0) return {};
  return {buffer.data(), buffer.size() / cols, cols, cols};
}

}  // namespace

AlignedBuffer<float> ReadDistanceTable(const LayerShape& shape, WeightLoader& loader) {
  const int64_t rows = shape.relative_positions.position_rows(), width = shape.hidden_size;
  const AlignedBuffer<float> read = loader.ReadTable("relative_positions", rows * width);
  AlignedBuffer<float> table(PaddedRows(rows) * width);
  std::copy_n(read.data(), rows * width, table.data());
  if (!shape.relative_positions.has_norm) return table;
  const NormParameters norm =
      loader.ReadNorm("relative_positions_norm", width, shape.norms.kind, shape.norms.epsilon);
  const MatrixView<float> view = {table.data(), rows, width, width};
  LayerNorm(ThreadTeam(1), view, norm.view(), view);
  return table;
}

AttentionExtra::AttentionExtra(const std::string& prefix, const LayerShape& shape,
                               const PackedLinear& qkv, const AlignedBuffer<float>& distances,
                               WeightLoader& loader) {
  if (shape.attention.kind == AttentionKind::kAdditive) {
    score_weights_ = loader.Keep(loader.ReadTable(prefix + "score", shape.key_columns()));
  }
  if (const auto& [keys, positions] = shape.attention.linformer; keys > 0) {
    mixed_positions_ = positions;
    key_mixing_ = loader.Keep(loader.ReadTable(prefix + "key_mixing", keys * positions));
    value_mixing_ = loader.Keep(loader.ReadTable(prefix + "value_mixing", keys * positions));
  }
  if (shape.relative_positions.kind == RelativePositions::kDisentangled) {
    LoadPositions(prefix, shape, qkv, distances, loader);
  }
}

void AttentionExtra::LoadPositions(const std::string& prefix, const LayerShape& shape,
                                   const PackedLinear& qkv, const AlignedBuffer<float>& distances,
                                   WeightLoader& loader) {
  const RelativePositionShape& relative = shape.relative_positions;
  position_width_ = shape.key_columns();
  // `shared_column` is where the token projections have the columns to share.
  const auto project = [&](const char* name, int64_t shared_column) {
    const PackedLinear linear = relative.shares_projections
                                    ? qkv
                                    : loader.ReadLinear(prefix + name, position_width_,
                                                        shape.hidden_size, ProductRows::kLoading);
    if (!loader.status().ok()) return AlignedBuffer<float>();
    return Project(linear, distances, relative.position_rows(),
                   relative.shares_projections ? shared_column : 0, position_width_);
  };
  if (relative.scores_queries) {
    position_keys_ = loader.Keep(project("position_key", shape.key_column()));
  }
  if (relative.scores_keys) position_queries_ = loader.Keep(project("position_query", 0));
}

void AttentionExtra::AddTo(AttentionInput& input, const LayerRun& run) const {
  input.score_weights = score_weights_.data();
  input.key_mixing = ViewOf(key_mixing_, mixed_positions_);
  input.value_mixing = ViewOf(value_mixing_, mixed_positions_);
  input.relative =
      run.tables.WithDistanceRows({.keys = ViewOf(position_keys_, position_width_),
                                   .queries = ViewOf(position_queries_, position_width_)});
}

}  // namespace attendant
