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
  std::fill(table.data() + rows * width, table.data() + table.size(), 0.0f);
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
  absl::Status status;
  if (relative.scores_queries && relative.shares_projections) {
    projections.ProjectWith(qkv, table, shape.key_column(), loader, projections.keys_);
  } else if (relative.scores_queries) {
    status = projections.Project(prefix + "position_key", table, loader, projections.keys_);
  }
  if (status.ok() && relative.scores_keys && relative.shares_projections) {
    projections.ProjectWith(qkv, table, 0, loader, projections.queries_);
  } else if (status.ok() && relative.scores_keys) {
    status = projections.Project(prefix + "position_query", table, loader, projections.queries_);
  }
  if (!status.ok()) return status;
  return projections;
}

absl::Status PositionProjections::Project(const std::string& name,
                                          const AlignedBuffer<float>& table, WeightLoader& loader,
                                          SharedBuffer<float>& target) const {
  const int64_t in = table.size() / PaddedRows(rows_);
  ASSIGN_OR_RETURN(PackedLinear linear, loader.ReadLinear(name, width_, in, ProductRows::kLoading));
  ProjectWith(linear, table, 0, loader, target);
  return absl::OkStatus();
}

void PositionProjections::ProjectWith(const PackedLinear& linear, const AlignedBuffer<float>& table,
                                      int64_t first_column, WeightLoader& loader,
                                      SharedBuffer<float>& target) const {
  const int64_t padded = PaddedRows(rows_), in = linear.in_features(), out = linear.out_features();
  AlignedBuffer<float> projected(padded * out);
  const ThreadTeam team(1);
  GemmWorkspace workspace(team);
  workspace.Reserve(linear, padded);
  workspace.Apply(linear, MatrixView<const float>{table.data(), padded, in, in},
                  MatrixView<float>{projected.data(), padded, out, out});
  AlignedBuffer<float> taken(rows_ * width_);
  for (int64_t r = 0; r < rows_; ++r) {
    std::copy_n(projected.data() + r * out + first_column, width_, taken.data() + r * width_);
  }
  target = loader.Keep(std::move(taken));
}

void PositionProjections::AddTo(AttentionInput& input, const LayerRun& run) const {
  const auto view = [&](const SharedBuffer<float>& buffer) -> MatrixView<const float> {
    if (buffer.size() == 0) return {};
    return {buffer.data(), rows_, width_, width_};
  };
  input.relative = run.tables.WithDistanceRows({.keys = view(keys_), .queries = view(queries_)});
}

}  // namespace attendant
