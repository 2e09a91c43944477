#include "engine/layers/encoder_layer.h"

#include <utility>

#include "engine/kernels/norm.h"

namespace attendant {

absl::StatusOr<EncoderLayer> EncoderLayer::Load(const std::string& prefix, const LayerShape& shape,
                                                WeightLoader& loader) {
  absl::StatusOr<MultiHeadAttention> attention = MultiHeadAttention::Load(prefix, shape, loader);
  if (!attention.ok()) return attention.status();
  EncoderLayer layer(shape.norm_placement, *std::move(attention));
  if (shape.norm_placement == NormPlacement::kNone) return layer;

  const auto read_norm = [&](const std::string& name) {
    return loader.ReadNorm(prefix + name, shape.hidden_size, shape.norm_kind, shape.norm_epsilon);
  };
  if (shape.has_attention_norm) {
    absl::StatusOr<NormParameters> attention_norm = read_norm("attention_norm");
    if (!attention_norm.ok()) return attention_norm.status();
    layer.attention_norm_ = *std::move(attention_norm);
  }
  if (shape.has_second_attention_norm) {
    absl::StatusOr<NormParameters> second = read_norm("second_attention_norm");
    if (!second.ok()) return second.status();
    layer.second_attention_norm_ = *std::move(second);
  }
  if (shape.feed_forward_width == 0) return layer;

  absl::StatusOr<FeedForward> feed_forward = FeedForward::Load(prefix, shape, loader);
  if (!feed_forward.ok()) return feed_forward.status();
  layer.feed_forward_ = *std::move(feed_forward);
  absl::StatusOr<NormParameters> feed_forward_norm = read_norm("feed_forward_norm");
  if (!feed_forward_norm.ok()) return feed_forward_norm.status();
  layer.feed_forward_norm_ = *std::move(feed_forward_norm);
  return layer;
}

MatrixView<float> EncoderLayer::Forward(MatrixView<float> x, RunState& run) const {
  x = AttentionBlock(x, run);
  return feed_forward_ ? FeedForwardBlock(x, run) : x;
}

MatrixView<float> EncoderLayer::ForwardWanted(MatrixView<float> x, const PackedBatch& batch,
                                              RunState& run) const {
  const absl::Span<const int32_t> rows = batch.wanted_rows;
  run.NarrowQueries(batch);
  const MatrixView<float> context = Context(x, run);
  const int64_t all = std::exchange(run.tokens, static_cast<int64_t>(rows.size()));
  const MatrixView<float> branch = attention_.Project(RunState::Compact(rows, context), run);
  MatrixView<float> y = JoinAttention(RunState::Compact(rows, x), branch, run);
  if (feed_forward_) y = FeedForwardBlock(y, run);
  run.tokens = all;
  RunState::Expand(rows, y);
  y.rows = x.rows;
  return y;
}

MatrixView<float> EncoderLayer::AttentionBlock(MatrixView<float> x, RunState& run) const {
  return JoinAttention(x, Projected(x, run), run);
}

MatrixView<float> EncoderLayer::FeedForwardBlock(MatrixView<float> x, RunState& run) const {
  const MatrixView<float> entry = EntryOf(feed_forward_norm_, x, run);
  return AddAndNorm(x, feed_forward_->Forward(entry, run), feed_forward_norm_, run);
}

MatrixView<float> EncoderLayer::Context(MatrixView<float> x, RunState& run) const {
  return attention_.Context(EntryOf(attention_norm_, x, run), run);
}

MatrixView<float> EncoderLayer::Projected(MatrixView<float> x, RunState& run) const {
  return attention_.Project(Context(x, run), run);
}

// norm(x), beside the x that the residual will need, or x itself.
MatrixView<float> EncoderLayer::EntryOf(const std::optional<NormParameters>& norm,
                                        MatrixView<float> x, RunState& run) const {
  if (placement_ != NormPlacement::kPre || !norm) return x;
  const MatrixView<float> normed = run.Padded(run.activations.branch());
  LayerNorm(run.team, run.Kept(x), norm->view(), run.Kept(normed));
  return normed;
}

MatrixView<float> EncoderLayer::JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                                              RunState& run) const {
  if (!second_attention_norm_) return AddAndNorm(x, branch, attention_norm_, run);
  AddLayerNorm(run.team, run.Kept(x), run.Kept(branch), attention_norm_->view(), run.Kept(branch));
  return AddAndNorm(x, branch, second_attention_norm_, run);
}

MatrixView<float> EncoderLayer::AddAndNorm(MatrixView<float> x, MatrixView<float> branch,
                                           const std::optional<NormParameters>& norm,
                                           RunState& run) const {
  const MatrixView<float> y = run.Kept(x);
  switch (placement_) {
    case NormPlacement::kPost:
      AddLayerNorm(run.team, y, run.Kept(branch), norm->view(), y);
      return x;
    case NormPlacement::kPre:
      Add(run.team, y, run.Kept(branch), y);
      return x;
    case NormPlacement::kNone:
      return branch;
  }
  return branch;
}

absl::Status EncoderLayer::ReplaceNorms(WeightLoader& loader) {
  absl::Status status = attention_.ReplaceNorms(loader);
  for (auto* norm : {&attention_norm_, &second_attention_norm_, &feed_forward_norm_}) {
    if (status.ok()) status = loader.ReplaceNorm(*norm);
  }
  return status;
}

void EncoderLayer::ReserveScratch(RunState& run) const {
  attention_.ReserveScratch(run);
  if (feed_forward_) feed_forward_->ReserveScratch(run);
}

int64_t EncoderLayer::bytes() const {
  return attention_.bytes() + (attention_norm_ ? attention_norm_->bytes() : 0) +
         (second_attention_norm_ ? second_attention_norm_->bytes() : 0) +
         (feed_forward_ ? feed_forward_->bytes() : 0) +
         (feed_forward_norm_ ? feed_forward_norm_->bytes() : 0);
}

}  // namespace attendant
