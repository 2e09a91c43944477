#include "engine/layers/multi_head_attention.h"

#include <utility>
#include <vector>

#include "engine/checkpoint/weight_source.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/rope.h"

namespace attendant {

absl::StatusOr<MultiHeadAttention> MultiHeadAttention::Load(const std::string& prefix,
                                                            const LayerShape& shape,
                                                            WeightLoader& loader) {
  MultiHeadAttention attention(shape);
  std::vector<LinearPart> parts;
  for (const auto& [name, out] : InputProjections(shape)) parts.push_back({prefix + name, out});
  if (!parts.empty()) {
    absl::StatusOr<PackedLinear> qkv = loader.ReadFusedLinear(parts, shape.hidden_size);
    if (!qkv.ok()) return qkv.status();
    attention.qkv_ = *std::move(qkv);
  }
  if (shape.has_output_projection) {
    const LinearPart part = {prefix + "output", shape.projected_width(),
                             shape.has_branch_scale ? prefix + "attention_scale" : ""};
    absl::StatusOr<PackedLinear> output = loader.ReadFusedLinear({part}, shape.context_width());
    if (!output.ok()) return output.status();
    attention.output_ = *std::move(output);
  }
  if (!shape.has_query_key_norms) return attention;
  for (auto [name, norm] : {std::pair{"query_norm", &attention.query_norm_},
                            std::pair{"key_norm", &attention.key_norm_}}) {
    absl::StatusOr<NormParameters> read = loader.ReadNorm(
        prefix + name, shape.heads * shape.key_width, shape.norm_kind, shape.norm_epsilon);
    if (!read.ok()) return read.status();
    *norm = *std::move(read);
  }
  return attention;
}

MatrixView<float> MultiHeadAttention::Context(MatrixView<const float> x, RunState& run) const {
  const MatrixView<const float> qkv = qkv_ ? ProjectInput(x, run) : x.Rows(0, run.tokens);
  const int64_t keys = shape_.heads * shape_.key_width;
  const AttentionInput input = {
      .queries = qkv.Columns(0, keys),
      .keys = qkv.Columns(shape_.key_column(), keys),
      .values = qkv.Columns(shape_.value_column(), shape_.context_width()),
      .distances = run.distances()};
  const MatrixView<float> context = run.activations.context();
  run.keyless_rows += Attention(run.team, AttentionShapeOf(shape_, run.mode), input, run.sequences,
                                run.Kept(context), run.attention);
  return run.Padded(context);
}

MatrixView<const float> MultiHeadAttention::ProjectInput(MatrixView<const float> x,
                                                         RunState& run) const {
  const MatrixView<float> qkv = run.Padded(run.activations.qkv());
  run.Apply(*qkv_, x, qkv);
  const MatrixView<float> kept = run.Kept(qkv);
  const int64_t keys = shape_.heads * shape_.key_width;
  const auto normalize = [&](const NormParameters& norm, MatrixView<float> heads) {
    LayerNorm(run.team, heads, norm.view(), heads);
  };
  if (query_norm_) normalize(*query_norm_, kept.Columns(0, keys));
  if (key_norm_) normalize(*key_norm_, kept.Columns(shape_.key_column(), keys));
  if (const RelativePositionShape& relative = shape_.relative_positions;
      relative.kind == RelativePositions::kRotary) {
    Rotate(run.team, run.rotary_table(relative.rotary_theta), relative.rotary_pairs, run.positions,
           shape_.key_width, kept.Columns(0, shape_.value_column()));
  }
  return kept;
}

MatrixView<float> MultiHeadAttention::Project(MatrixView<float> context, RunState& run) const {
  if (!output_) return context;
  const MatrixView<float> projected = run.Padded(run.activations.branch());
  run.Apply(*output_, context, projected);
  return projected;
}

void MultiHeadAttention::ReserveScratch(RunState& run) const {
  if (qkv_) run.gemm.Reserve(*qkv_, PaddedRows(run.max_tokens));
  if (output_) run.gemm.Reserve(*output_, PaddedRows(run.max_tokens));
}

int64_t MultiHeadAttention::bytes() const {
  return (qkv_ ? qkv_->bytes() : 0) + (output_ ? output_->bytes() : 0) +
         (query_norm_ ? query_norm_->bytes() : 0) + (key_norm_ ? key_norm_->bytes() : 0);
}

}  // namespace attendant
