#include "engine/layers/multi_head_attention.h"

#include "engine/kernels/attention.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/rope.h"

namespace attendant {

absl::StatusOr<MultiHeadAttention> MultiHeadAttention::Load(const std::string& prefix,
                                                            const LayerShape& shape,
                                                            WeightLoader& loader) {
  const int64_t keys = shape.heads * shape.key_width;
  const int64_t values = shape.heads * shape.value_width;
  absl::StatusOr<PackedLinear> qkv = loader.ReadFusedLinear(
      {{prefix + "query", keys}, {prefix + "key", keys}, {prefix + "value", values}},
      shape.hidden_size);
  if (!qkv.ok()) return qkv.status();
  MultiHeadAttention attention(shape, *std::move(qkv));
  if (shape.has_output_projection) {
    const LinearPart part = {prefix + "output", shape.hidden_size,
                             shape.has_branch_scale ? prefix + "attention_scale" : ""};
    absl::StatusOr<PackedLinear> output = loader.ReadFusedLinear({part}, shape.context_width());
    if (!output.ok()) return output.status();
    attention.output_ = *std::move(output);
  }
  if (!shape.has_query_key_norms) return attention;
  for (auto [name, norm] : {std::pair{"query_norm", &attention.query_norm_},
                            std::pair{"key_norm", &attention.key_norm_}}) {
    absl::StatusOr<NormParameters> read =
        loader.ReadNorm(prefix + name, keys, shape.norm_kind, shape.norm_epsilon);
    if (!read.ok()) return read.status();
    *norm = *std::move(read);
  }
  return attention;
}

MatrixView<float> MultiHeadAttention::Context(MatrixView<const float> x, RunState& run) const {
  const MatrixView<float> qkv = run.Padded(run.activations.qkv());
  run.Apply(qkv_, x, qkv);

  const int64_t keys = shape_.heads * shape_.key_width;
  const MatrixView<float> kept = run.Kept(qkv);
  const auto normalize = [&](const NormParameters& norm, MatrixView<float> heads) {
    LayerNorm(run.team, heads, norm.view(), heads);
  };
  if (query_norm_) normalize(*query_norm_, kept.Columns(0, keys));
  if (key_norm_) normalize(*key_norm_, kept.Columns(keys, keys));
  if (const RelativePositionShape& relative = shape_.relative_positions;
      relative.kind == RelativePositions::kRotary) {
    Rotate(run.team, run.rotary_table(relative.rotary_theta), relative.rotary_pairs, run.positions,
           shape_.key_width, kept.Columns(0, 2 * keys));
  }
  const AttentionInput input = {.queries = kept.Columns(0, keys),
                                .keys = kept.Columns(keys, keys),
                                .values = kept.Columns(2 * keys, shape_.context_width()),
                                .distances = run.distances()};
  const MatrixView<float> context = run.activations.context();
  run.keyless_rows += Attention(run.team, AttentionShapeOf(shape_, run.mode), input, run.sequences,
                                run.Kept(context), run.attention);
  return run.Padded(context);
}

MatrixView<float> MultiHeadAttention::Project(MatrixView<float> context, RunState& run) const {
  if (!output_) return context;
  const MatrixView<float> projected = run.Padded(run.activations.branch());
  run.Apply(*output_, context, projected);
  return projected;
}

void MultiHeadAttention::ReserveScratch(RunState& run) const {
  run.gemm.Reserve(qkv_, PaddedRows(run.max_tokens));
  if (output_) run.gemm.Reserve(*output_, PaddedRows(run.max_tokens));
}

int64_t MultiHeadAttention::bytes() const {
  return qkv_.bytes() + (output_ ? output_->bytes() : 0) +
         (query_norm_ ? query_norm_->bytes() : 0) + (key_norm_ ? key_norm_->bytes() : 0);
}

}  // namespace attendant
