#include "engine/layers/feed_forward.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

namespace attendant {

absl::StatusOr<FeedForward> FeedForward::Load(const std::string& prefix, const LayerShape& shape,
                                              WeightLoader& loader) {
  std::optional<PackedLinear> gate;
  const int64_t width = shape.inner_width();
  if (shape.feed_forward.has_gate) {
    ASSIGN_OR_RETURN(
        gate, loader.ReadLinear(prefix + "feed_forward_gate", shape.feed_forward.width, width));
  }
  ASSIGN_OR_RETURN(PackedLinear in,
                   loader.ReadLinear(prefix + "feed_forward_in", shape.feed_forward.width, width));
  const LinearPart part = {prefix + "feed_forward_out", width,
                           shape.extras.has_branch_scale ? prefix + "feed_forward_scale" : ""};
  ASSIGN_OR_RETURN(PackedLinear out,
                   loader.ReadFusedLinear({part}, shape.feed_forward.width, ProductRows::kInner));
  FeedForward feed_forward(shape.feed_forward.activation, std::move(in), std::move(out));
  feed_forward.gate_ = std::move(gate);
  return feed_forward;
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
    workspace.gemm.Apply(*gate_, x, gate, activation_);
    workspace.gemm.Apply(in_, x, inner.rows);
    Multiply(workspace.team, inner.rows, gate, inner);
  } else {
    workspace.gemm.Apply(in_, x, inner, activation_);
  }
  workspace.gemm.Apply(out_, inner, y);
}

}  // namespace attendant
