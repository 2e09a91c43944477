#include "engine/layers/encoder_layer.h"

#include <utility>

#include "engine/kernels/norm/norm.h"
#include "engine/layers/extras/bottleneck.h"
#include "engine/layers/extras/token_convolution.h"
#include "engine/layers/state/rows.h"

namespace attendant {

absl::Status EncoderLayer::LoadAttentionNorms(const std::string& prefix, const LayerShape& shape,
                                              WeightLoader& loader) {
  const auto read_norm = [&](const char* name, std::optional<NormParameters>& norm) {
    absl::StatusOr<NormParameters> read =
        loader.ReadNorm(prefix + name, shape.inner_width(), shape.norms.kind, shape.norms.epsilon);
    if (read.ok()) norm = std::move(*read);
    return read.status();
  };
  absl::Status status;
  if (shape.norms.has_attention_norm) status = read_norm("attention_norm", attention_norm_);
  if (status.ok() && shape.extras.has_second_attention_norm) {
    status = read_norm("second_attention_norm", second_attention_norm_);
  }
  return status;
}

absl::Status EncoderLayer::LoadFeedForwards(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  if (shape.feed_forward.width == 0) return absl::OkStatus();
  for (int64_t i = 0; i < shape.feed_forward.blocks; ++i) {
    const std::string block = FeedForwardPrefix(prefix, shape, i);
    absl::StatusOr<FeedForward> feed_forward = FeedForward::Load(block, shape, loader);
    if (!feed_forward.ok()) return feed_forward.status();
    const bool is_last = i + 1 == shape.feed_forward.blocks && shape.norms.last_epsilon > 0;
    absl::StatusOr<NormParameters> norm =
        loader.ReadNorm(block + "feed_forward_norm", shape.inner_width(), shape.norms.kind,
                        is_last ? shape.norms.last_epsilon : shape.norms.epsilon);
    if (!norm.ok()) return norm.status();
    feed_forwards_.push_back({*std::move(feed_forward), *std::move(norm)});
  }
  return absl::OkStatus();
}

absl::StatusOr<EncoderLayer> EncoderLayer::Load(const std::string& prefix, const LayerShape& shape,
                                                WeightLoader& loader,
                                                const AlignedBuffer<float>& distances) {
  std::optional<Bottleneck> bottleneck;
  if (shape.extras.bottleneck.width > 0) {
    absl::StatusOr<Bottleneck> read = Bottleneck::Load(prefix, shape, loader);
    if (!read.ok()) return read.status();
    bottleneck = *std::move(read);
  }
  absl::StatusOr<MultiHeadAttention> attention =
      MultiHeadAttention::Load(prefix, shape, loader, distances);
  if (!attention.ok()) return attention.status();
  EncoderLayer layer(shape.norms.placement, *std::move(attention));
  if (shape.norms.placement == NormPlacement::kNone) return layer;
  absl::Status status = layer.LoadAttentionNorms(prefix, shape, loader);
  if (status.ok()) status = layer.LoadFeedForwards(prefix, shape, loader);
  if (!status.ok()) return status;
  if (bottleneck) {
    if (status = bottleneck->LoadOut(prefix, shape, loader); !status.ok()) return status;
    layer.extra_ = std::make_shared<const Bottleneck>(*std::move(bottleneck));
  } else if (shape.extras.convolution.taps > 0) {
    absl::StatusOr<TokenConvolution> convolution = TokenConvolution::Load(prefix, shape, loader);
    if (!convolution.ok()) return convolution.status();
    layer.extra_ = std::make_shared<const TokenConvolution>(*std::move(convolution));
  }
  return layer;
}

const PackedLinear* EncoderLayer::entry() const {
  const bool norms_first = placement_ == NormPlacement::kPre && attention_norm_;
  return norms_first || extra_ ? nullptr : attention_.entry();
}

const PackedLinear* EncoderLayer::ReaderAt(size_t block, const PackedLinear* next) const {
  if (block < feed_forwards_.size()) return feed_forwards_[block].block.entry();
  return extra_ ? extra_->exit() : next;
}

BlockRows EncoderLayer::Enter(LayerPart part, const PreparedRows& x, const LayerRun& run) const {
  return extra_ ? extra_->Enter(x.rows, part == LayerPart::kWhole, run) : BlockRows{x, x.rows};
}

PreparedRows EncoderLayer::Forward(LayerPart part, const PreparedRows& x, const PackedLinear* next,
                                   const LayerRun& run) const {
  if (!run.wanted_rows.empty()) return ForwardWanted(part, x, run);
  const auto [entry, residual] = Enter(part, x, run);
  const PreparedRows context = Context(entry, x.rows, run);
  if (part == LayerPart::kContext) return context.rows;
  return FromContext(part, {x.rows, residual, context}, next, run);
}

PreparedRows EncoderLayer::FromContext(LayerPart part, const Attended& attended,
                                       const PackedLinear* next, const LayerRun& run) const {
  const MatrixView<float> branch = attention_.Project(attended.context, run);
  if (part == LayerPart::kProjected) return branch;
  if (part == LayerPart::kAttentionBlock) {
    return JoinAttention(attended.residual, branch, nullptr, run);
  }
  PreparedRows residual = JoinAttention(attended.residual, branch, ReaderAt(0, next), run);
  for (size_t i = 0; i < feed_forwards_.size(); ++i) {
    residual = FeedForwardBlock(feed_forwards_[i], residual, ReaderAt(i + 1, next), run);
  }
  return extra_ ? extra_->Leave(attended.x, residual, run) : residual;
}

MatrixView<float> EncoderLayer::ForwardWanted(LayerPart part, const PreparedRows& x,
                                              const LayerRun& run) const {
  const absl::Span<const int32_t> rows = run.wanted_rows;
  const auto [entry, residual] = Enter(part, x, run);
  const MatrixView<float> context = Context(entry, x.rows, run).rows;
  if (part == LayerPart::kContext) return context;
  if (extra_ && part == LayerPart::kWhole) extra_->KeepRows(rows, x.rows, run);
  const Attended wanted = {x.rows, CompactRows(rows, residual), CompactRows(rows, context)};
  const LayerRun after = run.AfterAttention(static_cast<int64_t>(rows.size()));
  MatrixView<float> y = FromContext(part, wanted, nullptr, after).rows;
  ExpandRows(rows, y);
  y.rows = x.rows.rows;
  return y;
}

PreparedRows EncoderLayer::FeedForwardBlock(const NormedFeedForward& feed_forward,
                                            const PreparedRows& x, const PackedLinear* reader,
                                            const LayerRun& run) const {
  const auto& [block, norm] = feed_forward;
  const MatrixView<float> branch = block.Forward(EntryOf(norm, x, block.entry(), run), run);
  return AddAndNorm(x.rows, branch, norm, reader, run);
}

PreparedRows EncoderLayer::Context(const PreparedRows& entry, MatrixView<float> x,
                                   const LayerRun& run) const {
  if (!attention_norm_) return attention_.Context(entry, x, run);
  return attention_.Context(EntryOf(*attention_norm_, entry, attention_.entry(), run), x, run);
}

// Returns the input of a branch: norm(x), made ready for `reader` in a buffer of its own because
// the residual still needs x; or x itself if norms do not come first.
PreparedRows EncoderLayer::EntryOf(const NormParameters& norm, const PreparedRows& x,
                                   const PackedLinear* reader, const LayerRun& run) const {
  if (placement_ != NormPlacement::kPre) return x;
  const PreparedRows normed = {run.Padded(run.workspace.activations.branch()), run.Prepare(reader)};
  LayerNorm(run.workspace.team, run.Kept(x.rows), norm.view(), normed);
  return normed;
}

PreparedRows EncoderLayer::JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                                         const PackedLinear* reader, const LayerRun& run) const {
  if (placement_ != NormPlacement::kPost) return Add(x, branch, run);
  if (!second_attention_norm_) return AddAndNorm(x, branch, *attention_norm_, reader, run);
  AddLayerNorm(run.workspace.team, run.Kept(x), run.Kept(branch), attention_norm_->view(),
               run.Kept(branch));
  return AddAndNorm(x, branch, *second_attention_norm_, reader, run);
}

// Returns x + branch without a norm, or `branch` alone in layers without residuals.
MatrixView<float> EncoderLayer::Add(MatrixView<float> x, MatrixView<float> branch,
                                    const LayerRun& run) const {
  if (placement_ == NormPlacement::kNone) return branch;
  attendant::Add(run.workspace.team, run.Kept(x), run.Kept(branch), run.Kept(x));
  return x;
}

PreparedRows EncoderLayer::AddAndNorm(MatrixView<float> x, MatrixView<float> branch,
                                      const NormParameters& norm, const PackedLinear* reader,
                                      const LayerRun& run) const {
  if (placement_ != NormPlacement::kPost) return Add(x, branch, run);
  const PreparedRows y = {x, run.Prepare(reader)};
  AddLayerNorm(run.workspace.team, run.Kept(x), run.Kept(branch), norm.view(), y);
  return y;
}

absl::Status EncoderLayer::ReplaceAttention(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  absl::StatusOr<MultiHeadAttention> attention = MultiHeadAttention::Load(prefix, shape, loader);
  if (attention.ok()) attention_ = std::move(*attention);
  return attention.status();
}

void EncoderLayer::VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) {
  attention_.VisitNorms(visit);
  if (attention_norm_) visit(*attention_norm_);
  if (second_attention_norm_) visit(*second_attention_norm_);
  for (NormedFeedForward& feed_forward : feed_forwards_) visit(feed_forward.norm);
  if (!extra_) return;
  std::unique_ptr<LayerExtra> extra = extra_->Clone();
  extra->VisitNorms(visit);
  extra_ = std::move(extra);
}

void EncoderLayer::ReserveScratch(Workspace& workspace) const {
  attention_.ReserveScratch(workspace);
  for (const NormedFeedForward& feed_forward : feed_forwards_) {
    feed_forward.block.ReserveScratch(workspace);
  }
  if (extra_) extra_->ReserveScratch(workspace);
}

int64_t EncoderLayer::bytes() const {
  int64_t sum = attention_.bytes() + (attention_norm_ ? attention_norm_->bytes() : 0) +
                (second_attention_norm_ ? second_attention_norm_->bytes() : 0);
  for (const NormedFeedForward& feed_forward : feed_forwards_) {
    sum += feed_forward.block.bytes() + feed_forward.norm.bytes();
  }
  return sum + (extra_ ? extra_->bytes() : 0);
}

}  // namespace attendant
