#include "engine/layers/extras/position_projections.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/norm/norm.h"

namespace attendant {

absl::StatusOr<AlignedBuffer<float>> ReadDistanceTable(const LayerShape& shape,
                                                       WeightLoader& loader) {
  const int64_t rows = shape.relative_positions.position_rows(), width = shape.hidden_size;
  ASSIGN_OR_RETURN(AlignedBuffer<float> read, loader.ReadTable("relative_positions", rows * width));
  AlignedBuffer<float> table(PaddedRows(rows) * width);
  std::copy_n(read.data(), rows * width, table.data());
  if (!shape.relative_positions.has_norm) return table;
  ASSIGN_OR_RETURN(NormParameters norm, loader.ReadNorm("relative_positions_norm", width,
                                                        shape.norms.kind, shape.norms.epsilon));
  const MatrixView<float> view = {table.data(), rows, width, width};
  LayerNorm(ThreadTeam(1), view, norm.view(), view);
  return table;
}

absl::StatusOr<PositionProjections> PositionProjections::Load(const std::string& prefix,
                                                              const LayerShape& shape,
                                                              const PackedLinear& qkv,
                                                              const AlignedBuffer<float>& table,
                                                              WeightLoader& loader) {
  const RelativePositionShape& relative = shape.relative_positions;
  PositionProjections projections(relative.position_rows(), shape.key_columns());
  // `first_column` is where the token projections have the columns to share.
  const auto project = [&](const char* name, int64_t first_column, SharedBuffer<float>& target) {
    if (relative.shares_projections) {
      target = projections.Project(qkv, table, first_column, loader);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const PackedLinear linear,
                     loader.ReadLinear(prefix + name, shape.key_columns(), shape.hidden_size,
                                       ProductRows::kLoading));
    target = projections.Project(linear, table, 0, loader);
    return absl::OkStatus();
  };
  if (relative.scores_queries) {
    RETURN_IF_ERROR(project("position_key", shape.key_column(), projections.keys_));
  }
  if (relative.scores_keys) {
    RETURN_IF_ERROR(project("position_query", 0, projections.queries_));
  }
  return projections;
}

SharedBuffer<float> PositionProjections::Project(const PackedLinear& linear,
                                                 const AlignedBuffer<float>& table,
                                                 int64_t first_column, WeightLoader& loader) const {
  const int64_t in = linear.in_features(), out = linear.out_features();
  AlignedBuffer<float> projected(rows_ * out);
  const ThreadTeam team(1);
  GemmWorkspace workspace(team);
  workspace.Reserve(linear, PaddedRows(rows_));
  workspace.Apply(linear, MatrixView<const float>{table.data(), rows_, in, in},
                  MatrixView<float>{projected.data(), rows_, out, out});
  AlignedBuffer<float> taken(rows_ * width_);
  for (int64_t r = 0; r < rows_; ++r) {
    std::copy_n(projected.data() + r * out + first_column, width_, taken.data() + r * width_);
  }
  return loader.Keep(std::move(taken));
}

void PositionProjections::AddTo(AttentionInput& input, const LayerRun& run) const {
  const auto view = [&](const SharedBuffer<float>& buffer) -> MatrixView<const float> {
    if (buffer.size() == 0) return {};
    return {buffer.data(), rows_, width_, width_};
  };
  input.relative = run.tables.WithDistanceRows({.keys = view(keys_), .queries = view(queries_)});
}

}  // namespace attendant
