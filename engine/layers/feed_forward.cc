#include "engine/layers/feed_forward.h"

#include <algorithm>

#include "engine/kernels/norm/norm.h"
#include "engine/kernels/row_tiles.h"
#include "engine/layers/state/routing.h"
#include "engine/layers/state/rows.h"
#include "engine/model/residual_blocks.h"

namespace attendant {

FeedForward::FeedForward(const std::string& prefix, const LayerShape& shape, WeightLoader& loader)
    : activation_(shape.feed_forward.activation) {
  const int64_t width = shape.inner_width(), inner = shape.feed_forward.width;
  if (shape.feed_forward.has_gate) {
    gate_ = loader.ReadLinear(prefix + "feed_forward_gate", inner, width);
  }
  in_ = loader.ReadLinear(prefix + "feed_forward_in", inner, width);
  const LinearPart out = {prefix + "feed_forward_out", width,
                          shape.extras.has_branch_scale ? prefix + "feed_forward_scale" : ""};
  out_ = loader.ReadFusedLinear({out}, inner, ProductRows::kInner);
}

MatrixView<float> FeedForward::Forward(const LinearInput& x, const LayerRun& run) const {
  const MatrixView<float> y = run.Kept(run.workspace.activations.branch());
  for (int64_t begin = 0; begin < y.rows; begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, y.rows - begin);
    Compute(x.Rows(begin, rows), y.Rows(begin, rows), run.workspace);
  }
  return y;
}

void FeedForward::Compute(const LinearInput& x, MatrixView<float> y, Workspace& workspace) const {
  const PreparedRows inner = {
      Narrow(workspace.activations.feed_forward(), y.rows, out_.in_features()),
      workspace.gemm.PrepareInner(out_.in_features(), y.rows)};
  if (gate_) {
    const MatrixView<float> gate =
        Narrow(workspace.activations.gate(), inner.rows.rows, inner.rows.cols);
    workspace.gemm.Apply(gate_, x, gate, activation_);
    workspace.gemm.Apply(in_, x, inner.rows);
    Multiply(workspace.team, inner.rows, gate, inner);
  } else {
    workspace.gemm.Apply(in_, x, inner, activation_);
  }
  workspace.gemm.Apply(out_, inner, y);
}

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
