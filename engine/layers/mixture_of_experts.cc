#include "engine/layers/mixture_of_experts.h"

#include <algorithm>

#include "engine/kernels/row_tiles.h"
#include "engine/layers/state/routing.h"
#include "engine/layers/state/rows.h"
#include "engine/model/residual_blocks.h"

namespace attendant {

MixtureOfExperts::MixtureOfExperts(const std::string& prefix, const LayerShape& shape,
                                   WeightLoader& loader) {
  const int64_t width = shape.inner_width(), count = shape.feed_forward.mixture.experts;
  router_ = loader.ReadFloat32Linear(prefix + "router", count, width);
  for (int64_t i = 0; i < count; ++i) experts_.emplace_back(ExpertPrefix(prefix, i), shape, loader);
  bias_ = loader.Keep(loader.ReadTable(prefix + "experts_bias", width));
}

MatrixView<float> MixtureOfExperts::Forward(const LinearInput& x, const LayerRun& run) const {
  const MatrixView<float> y = run.Kept(run.workspace.activations.branch());
  for (int64_t begin = 0; begin < run.tokens; begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, run.tokens - begin);
    Compute(x.rows.Rows(begin, rows), y.Rows(begin, rows), run.workspace);
  }
  return y;
}

void MixtureOfExperts::Compute(MatrixView<const float> x, MatrixView<float> y,
                               Workspace& workspace) const {
  Distribute(x, workspace);
  const Routing& routing = workspace.activations.routing();
  for (size_t i = 0; i < experts_.size(); ++i) {
    const int64_t expert = static_cast<int64_t>(i);
    if (routing.rows(expert) == 0) continue;
    const MatrixView<float> rows =
        workspace.activations.expert_rows().Rows(routing.begin(expert), routing.rows(expert));
    experts_[i].Compute(rows, rows, workspace);
  }
  Combine(y, workspace);
}

void MixtureOfExperts::Distribute(MatrixView<const float> x, Workspace& workspace) const {
  Routing& routing = workspace.activations.routing();
  workspace.gemm.Apply(router_, x, routing.scores(x.rows));
  ForRows(workspace.team, x.rows, [&](int, int64_t r) { routing.Choose(r); });
  routing.AssignPlaces(x.rows);
  const MatrixView<float> places = workspace.activations.expert_rows();
  ForRows(workspace.team, x.rows, [&](int, int64_t r) {
    for (const ExpertChoice& choice : routing.choices(r)) {
      std::copy_n(x.row(r), x.cols, places.row(choice.place));
    }
  });
}

void MixtureOfExperts::Combine(MatrixView<float> y, Workspace& workspace) const {
  const Routing& routing = workspace.activations.routing();
  const MatrixView<float> places = workspace.activations.expert_rows();
  ForRows(workspace.team, y.rows, [&](int, int64_t r) {
    std::fill_n(y.row(r), y.cols, 0.0f);
    for (const ExpertChoice& choice : routing.choices(r)) {
      AddScaledRow(places.row(choice.place), choice.weight, y.cols, y.row(r));
    }
    AddRow(bias_.data(), y.cols, y.row(r));
  });
}

}  // namespace attendant
