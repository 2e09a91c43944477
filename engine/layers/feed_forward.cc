#include "engine/layers/feed_forward.h"

#include <algorithm>

#include "engine/kernels/norm/norm.h"

namespace attendant {

absl::StatusOr<FeedForward> FeedForward::Load(const std::string& prefix, const LayerShape& shape,
                                              WeightLoader& loader) {
  std::optional<PackedLinear> gate;
  const int64_t width = shape.inner_width();
  if (shape.feed_forward.has_gate) {
    absl::StatusOr<PackedLinear> read =
        loader.ReadLinear(prefix + "feed_forward_gate", shape.feed_forward.width, width);
    if (!read.ok()) return read.status();
    gate = *std::move(read);
  }
  absl::StatusOr<PackedLinear> in =
      loader.ReadLinear(prefix + "feed_forward_in", shape.feed_forward.width, width);
  if (!in.ok()) return in.status();
  const LinearPart part = {prefix + "feed_forward_out", width,
                           shape.extras.has_branch_scale ? prefix + "feed_forward_scale" : ""};
  absl::StatusOr<PackedLinear> out = loader.ReadFusedLinear({part}, shape.feed_forward.width);
  if (!out.ok()) return out.status();
  FeedForward feed_forward(shape.feed_forward.activation, *std::move(in), *std::move(out));
  feed_forward.gate_ = std::move(gate);
  return feed_forward;
}

MatrixView<float> FeedForward::Forward(const LinearInput& x, RunState& run) const {
  const MatrixView<float> inner = run.activations.feed_forward();
  const MatrixView<float> y = run.Padded(run.activations.branch());
  for (int64_t begin = 0; begin < y.rows; begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, y.rows - begin);
    if (gate_) {
      run.Apply(out_, Expand(x.Rows(begin, rows), inner.Rows(0, rows), run), y.Rows(begin, rows));
    } else {
      ApplyLinearPair(run.team, Pair(), x.Rows(begin, rows), inner.Rows(0, rows),
                      y.Rows(begin, rows), run.gemm);
    }
  }
  return y;
}

PreparedRows FeedForward::Expand(const LinearInput& x, MatrixView<float> inner,
                                 RunState& run) const {
  const MatrixView<float> gate = run.activations.gate().Rows(0, inner.rows);
  run.Apply(*gate_, x, gate, activation_);
  run.Apply(in_, x, inner);
  const PreparedRows gated = {inner, run.gemm.PrepareInner(out_, inner.rows)};
  Multiply(run.team, inner, gate, gated);
  return gated;
}

void FeedForward::ReserveScratch(RunState& run) const {
  // The norm before the block makes the operand of all rows at once.
  run.gemm.Reserve(in_, PaddedRows(run.max_tokens));
  const int64_t rows = std::min(kFeedForwardRows, PaddedRows(run.max_tokens));
  if (!gate_) return run.gemm.Reserve(Pair(), rows);
  run.gemm.Reserve(*gate_, rows);
  run.gemm.ReserveInner(out_, rows);
}

}  // namespace attendant
