#include "engine/layers/encoder_layer.h"

#include <utility>

#include "engine/kernels/norm/norm.h"

namespace attendant {

absl::StatusOr<EncoderLayer::NormedLinear> EncoderLayer::NormedLinear::Load(const std::string& name,
                                                                            int64_t out, int64_t in,
                                                                            const LayerShape& shape,
                                                                            WeightLoader& loader) {
  absl::StatusOr<PackedLinear> linear = loader.ReadLinear(name, out, in);
  if (!linear.ok()) return linear.status();
  absl::StatusOr<NormParameters> norm =
      loader.ReadNorm(name + "_norm", out, shape.norms.kind, shape.norms.epsilon);
  if (!norm.ok()) return norm.status();
  return NormedLinear{*std::move(linear), *std::move(norm)};
}

absl::StatusOr<std::optional<EncoderLayer::Bottleneck>> EncoderLayer::LoadBottleneck(
    const std::string& prefix, const LayerShape& shape, WeightLoader& loader) {
  if (shape.extras.bottleneck.width == 0) return std::optional<Bottleneck>();
  const auto load = [&](const char* name) {
    return NormedLinear::Load(prefix + name, shape.extras.bottleneck.width, shape.hidden_size,
                              shape, loader);
  };
  absl::StatusOr<NormedLinear> in = load("bottleneck_in");
  if (!in.ok()) return in.status();
  Bottleneck bottleneck = {.in = *std::move(in)};
  if (shape.extras.bottleneck.values_from_outside) {
    absl::StatusOr<NormedLinear> attention = load("bottleneck_attention");
    if (!attention.ok()) return attention.status();
    bottleneck.attention = *std::move(attention);
  }
  return std::optional<Bottleneck>(std::move(bottleneck));
}

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
  absl::StatusOr<std::optional<Bottleneck>> bottleneck = LoadBottleneck(prefix, shape, loader);
  if (!bottleneck.ok()) return bottleneck.status();
  absl::StatusOr<MultiHeadAttention> attention =
      MultiHeadAttention::Load(prefix, shape, loader, distances);
  if (!attention.ok()) return attention.status();
  EncoderLayer layer(shape.norms.placement, *std::move(attention));
  if (shape.norms.placement == NormPlacement::kNone) return layer;
  absl::Status status = layer.LoadAttentionNorms(prefix, shape, loader);
  if (status.ok()) status = layer.LoadFeedForwards(prefix, shape, loader);
  if (!status.ok()) return status;
  if (shape.extras.convolution.taps > 0) {
    absl::StatusOr<TokenConvolution> convolution = TokenConvolution::Load(prefix, shape, loader);
    if (!convolution.ok()) return convolution.status();
    layer.convolution_ = *std::move(convolution);
  }
  layer.bottleneck_ = *std::move(bottleneck);
  if (!layer.bottleneck_) return layer;
  absl::StatusOr<NormedLinear> out = NormedLinear::Load(
      prefix + "bottleneck_out", shape.hidden_size, shape.extras.bottleneck.width, shape, loader);
  if (!out.ok()) return out.status();
  layer.bottleneck_->out = *std::move(out);
  return layer;
}

MatrixView<float> EncoderLayer::NormedLinear::Apply(MatrixView<const float> x,
                                                    MatrixView<float> target, RunState& run) const {
  const MatrixView<float> y = run.Padded(target);
  run.Apply(linear, x, y);
  LayerNorm(run.team, run.Kept(y), norm.view(), run.Kept(y));
  return y;
}

MatrixView<float> EncoderLayer::Convolve(LayerPart part, MatrixView<float> x, RunState& run) const {
  if (!convolution_ || part != LayerPart::kWhole) return {};
  return convolution_->Forward(x, run);
}

const PackedLinear* EncoderLayer::entry() const {
  const bool norms_first = placement_ == NormPlacement::kPre && attention_norm_;
  return norms_first || bottleneck_ || convolution_ ? nullptr : attention_.entry();
}

const PackedLinear* EncoderLayer::ReaderAt(size_t block, const PackedLinear* next) const {
  if (block < feed_forwards_.size()) return feed_forwards_[block].block.entry();
  if (convolution_) return nullptr;
  return bottleneck_ ? &bottleneck_->out->linear : next;
}

PreparedRows EncoderLayer::Forward(LayerPart part, const PreparedRows& x, const PackedLinear* next,
                                   RunState& run) const {
  const MatrixView<float> convolved = Convolve(part, x.rows, run);
  const MatrixView<float> context = Context(x, run);
  if (part == LayerPart::kContext) return context;
  return FromContext(part, {x.rows, ResidualOf(x.rows, run), context, convolved}, next, run);
}

PreparedRows EncoderLayer::FromContext(LayerPart part, const Entered& entered,
                                       const PackedLinear* next, RunState& run) const {
  const MatrixView<float> branch = attention_.Project(entered.context, run);
  if (part == LayerPart::kProjected) return branch;
  const bool is_whole = part == LayerPart::kWhole;
  const PackedLinear* const reader = is_whole ? ReaderAt(0, next) : nullptr;
  const PreparedRows residual = JoinAttention(entered.residual, branch, reader, run);
  return is_whole ? Finish(entered, residual, next, run) : residual;
}

PreparedRows EncoderLayer::Finish(const Entered& entered, PreparedRows residual,
                                  const PackedLinear* next, RunState& run) const {
  for (size_t i = 0; i < feed_forwards_.size(); ++i) {
    residual = FeedForwardBlock(feed_forwards_[i], residual, ReaderAt(i + 1, next), run);
  }
  if (convolution_) convolution_->AddTo(residual.rows, entered.convolved, run);
  if (!bottleneck_) return residual;
  const MatrixView<float> x = entered.x, out = run.Padded(run.activations.outer());
  run.Apply(bottleneck_->out->linear, residual, out);
  AddLayerNorm(run.team, run.Kept(x), run.Kept(out), bottleneck_->out->norm.view(), run.Kept(x));
  return x;
}

MatrixView<float> EncoderLayer::ForwardWanted(LayerPart part, const PreparedRows& x,
                                              const PackedBatch& batch, RunState& run) const {
  const absl::Span<const int32_t> rows = batch.wanted_rows;
  MatrixView<float> convolved = Convolve(part, x.rows, run);
  if (convolved.rows > 0) convolved = RunState::Compact(rows, convolved);
  run.NarrowQueries(batch);
  const MatrixView<float> context = Context(x, run);
  if (part == LayerPart::kContext) return context;
  const MatrixView<float> residual = RunState::Compact(rows, ResidualOf(x.rows, run));
  const MatrixView<float> entered = bottleneck_ ? RunState::Compact(rows, x.rows) : residual;
  const Entered wanted = {entered, residual, RunState::Compact(rows, context), convolved};
  const int64_t all = std::exchange(run.tokens, static_cast<int64_t>(rows.size()));
  MatrixView<float> y = FromContext(part, wanted, nullptr, run).rows;
  run.tokens = all;
  RunState::Expand(rows, y);
  y.rows = x.rows.rows;
  return y;
}

PreparedRows EncoderLayer::FeedForwardBlock(const NormedFeedForward& feed_forward,
                                            const PreparedRows& x, const PackedLinear* reader,
                                            RunState& run) const {
  const auto& [block, norm] = feed_forward;
  const MatrixView<float> branch = block.Forward(EntryOf(norm, x, block.entry(), run), run);
  return AddAndNorm(x.rows, branch, norm, reader, run);
}

MatrixView<float> EncoderLayer::Context(const PreparedRows& x, RunState& run) const {
  if (!bottleneck_) {
    const PreparedRows entry =
        attention_norm_ ? EntryOf(*attention_norm_, x, attention_.entry(), run) : x;
    return attention_.Context(entry, x.rows, run);
  }
  MatrixView<float> entry = bottleneck_->in.Apply(x.rows, run.activations.inner(), run);
  if (bottleneck_->attention) {
    entry = bottleneck_->attention->Apply(x.rows, run.activations.inner_queries(), run);
  }
  return attention_.Context(entry, x.rows, run);
}

// Returns the input of a branch: norm(x), made ready for `reader` in a buffer of its own because
// the residual still needs x; or x itself if norms do not come first.
PreparedRows EncoderLayer::EntryOf(const NormParameters& norm, const PreparedRows& x,
                                   const PackedLinear* reader, RunState& run) const {
  if (placement_ != NormPlacement::kPre) return x;
  const PreparedRows normed = {run.Padded(run.activations.branch()), run.Prepare(reader)};
  LayerNorm(run.team, run.Kept(x.rows), norm.view(), normed);
  return normed;
}

PreparedRows EncoderLayer::JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                                         const PackedLinear* reader, RunState& run) const {
  if (placement_ != NormPlacement::kPost) return Add(x, branch, run);
  if (!second_attention_norm_) return AddAndNorm(x, branch, *attention_norm_, reader, run);
  AddLayerNorm(run.team, run.Kept(x), run.Kept(branch), attention_norm_->view(), run.Kept(branch));
  return AddAndNorm(x, branch, *second_attention_norm_, reader, run);
}

// Returns x + branch without a norm, or `branch` alone in layers without residuals.
MatrixView<float> EncoderLayer::Add(MatrixView<float> x, MatrixView<float> branch,
                                    RunState& run) const {
  if (placement_ == NormPlacement::kNone) return branch;
  attendant::Add(run.team, run.Kept(x), run.Kept(branch), run.Kept(x));
  return x;
}

PreparedRows EncoderLayer::AddAndNorm(MatrixView<float> x, MatrixView<float> branch,
                                      const NormParameters& norm, const PackedLinear* reader,
                                      RunState& run) const {
  if (placement_ != NormPlacement::kPost) return Add(x, branch, run);
  const PreparedRows y = {x, run.Prepare(reader)};
  AddLayerNorm(run.team, run.Kept(x), run.Kept(branch), norm.view(), y);
  return y;
}

absl::Status EncoderLayer::ReplaceAttention(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  absl::StatusOr<MultiHeadAttention> attention = MultiHeadAttention::Load(prefix, shape, loader);
  if (attention.ok()) attention_ = std::move(*attention);
  return attention.status();
}

absl::Status EncoderLayer::ReplaceNorms(WeightLoader& loader) {
  absl::Status status = attention_.ReplaceNorms(loader);
  for (auto* norm : {&attention_norm_, &second_attention_norm_}) {
    if (status.ok()) status = loader.ReplaceNorm(*norm);
  }
  for (NormedFeedForward& feed_forward : feed_forwards_) {
    if (status.ok()) status = loader.ReplaceNorm(feed_forward.norm);
  }
  if (status.ok() && convolution_) status = convolution_->ReplaceNorms(loader);
  if (!bottleneck_ || !status.ok()) return status;
  status = loader.ReplaceNorm(bottleneck_->in.norm);
  if (status.ok() && bottleneck_->attention) {
    status = loader.ReplaceNorm(bottleneck_->attention->norm);
  }
  if (status.ok()) status = loader.ReplaceNorm(bottleneck_->out->norm);
  return status;
}

void EncoderLayer::ReserveScratch(RunState& run) const {
  attention_.ReserveScratch(run);
  for (const NormedFeedForward& feed_forward : feed_forwards_) {
    feed_forward.block.ReserveScratch(run);
  }
  if (convolution_) convolution_->ReserveScratch(run);
  if (!bottleneck_) return;
  const int64_t rows = PaddedRows(run.max_tokens);
  run.gemm.Reserve(bottleneck_->in.linear, rows);
  if (bottleneck_->attention) run.gemm.Reserve(bottleneck_->attention->linear, rows);
  run.gemm.Reserve(bottleneck_->out->linear, rows);
}

int64_t EncoderLayer::bytes() const {
  int64_t sum = attention_.bytes() + (attention_norm_ ? attention_norm_->bytes() : 0) +
                (second_attention_norm_ ? second_attention_norm_->bytes() : 0);
  for (const NormedFeedForward& feed_forward : feed_forwards_) {
    sum += feed_forward.block.bytes() + feed_forward.norm.bytes();
  }
  if (convolution_) sum += convolution_->bytes();
  if (!bottleneck_) return sum;
  return sum + bottleneck_->in.bytes() + bottleneck_->out->bytes() +
         (bottleneck_->attention ? bottleneck_->attention->bytes() : 0);
}

}  // namespace attendant
