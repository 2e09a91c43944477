#include "engine/layers/feed_forward.h"

#include <algorithm>

#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

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

}  // namespace attendant
