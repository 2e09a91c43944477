#include "engine/layers/feed_forward.h"

#include <algorithm>

namespace attendant {

absl::StatusOr<FeedForward> FeedForward::Load(const std::string& prefix, const LayerShape& shape,
                                              WeightLoader& loader) {
  absl::StatusOr<PackedLinear> in =
      loader.ReadLinear(prefix + "feed_forward_in", shape.feed_forward_width, shape.hidden_size);
  if (!in.ok()) return in.status();
  absl::StatusOr<PackedLinear> out =
      loader.ReadLinear(prefix + "feed_forward_out", shape.hidden_size, shape.feed_forward_width);
  if (!out.ok()) return out.status();
  return FeedForward(shape.activation, *std::move(in), *std::move(out));
}

MatrixView<float> FeedForward::Forward(MatrixView<const float> x, RunState& run) const {
  const MatrixView<float> inner = run.activations.feed_forward();
  const MatrixView<float> y = run.Padded(run.activations.branch());
  for (int64_t begin = 0; begin < x.rows; begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, x.rows - begin);
    run.Apply(in_, x.Rows(begin, rows), inner.Rows(0, rows), activation_);
    run.Apply(out_, inner.Rows(0, rows), y.Rows(begin, rows));
  }
  return y;
}

void FeedForward::ReserveScratch(RunState& run) const {
  const int64_t rows = std::min(kFeedForwardRows, PaddedRows(run.max_tokens));
  run.gemm.Reserve(in_, rows);
  run.gemm.Reserve(out_, rows);
}

}  // namespace attendant
