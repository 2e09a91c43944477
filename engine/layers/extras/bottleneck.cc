#include "engine/layers/extras/bottleneck.h"

#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

namespace attendant {

absl::StatusOr<Bottleneck::NormedLinear> Bottleneck::NormedLinear::Load(const std::string& name,
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

MatrixView<float> Bottleneck::NormedLinear::Apply(MatrixView<const float> x,
                                                  MatrixView<float> target,
                                                  const LayerRun& run) const {
  const MatrixView<float> y = run.Padded(target);
  run.workspace.Apply(linear, x, y);
  LayerNorm(run.workspace.team, run.Kept(y), norm.view(), run.Kept(y));
  return y;
}

absl::StatusOr<Bottleneck> Bottleneck::Load(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  const BottleneckShape& bottleneck = shape.extras.bottleneck;
  const auto load = [&](const char* name) {
    return NormedLinear::Load(prefix + name, bottleneck.width, shape.hidden_size, shape, loader);
  };
  absl::StatusOr<NormedLinear> in = load("bottleneck_in");
  if (!in.ok()) return in.status();
  Bottleneck loaded(*std::move(in));
  if (!bottleneck.values_from_outside) return loaded;
  absl::StatusOr<NormedLinear> attention = load("bottleneck_attention");
  if (!attention.ok()) return attention.status();
  loaded.attention_ = *std::move(attention);
  return loaded;
}

absl::Status Bottleneck::LoadOut(const std::string& prefix, const LayerShape& shape,
                                 WeightLoader& loader) {
  absl::StatusOr<NormedLinear> out = NormedLinear::Load(
      prefix + "bottleneck_out", shape.hidden_size, shape.extras.bottleneck.width, shape, loader);
  if (!out.ok()) return out.status();
  out_ = *std::move(out);
  return absl::OkStatus();
}

BlockRows Bottleneck::Enter(MatrixView<float> x, bool /*is_whole*/, const LayerRun& run) const {
  const MatrixView<float> inner = in_.Apply(x, run.workspace.activations.inner(), run);
  if (!attention_) return {inner, inner};
  return {attention_->Apply(x, run.workspace.activations.inner_queries(), run), inner};
}

void Bottleneck::KeepRows(absl::Span<const int32_t> rows, MatrixView<float> x,
                          const LayerRun& /*run*/) const {
  CompactRows(rows, x);
}

MatrixView<float> Bottleneck::Leave(MatrixView<float> x, const PreparedRows& inside,
                                    const LayerRun& run) const {
  const MatrixView<float> out = run.Padded(run.workspace.activations.outer());
  run.workspace.Apply(out_->linear, inside, out);
  AddLayerNorm(run.workspace.team, run.Kept(x), run.Kept(out), out_->norm.view(), run.Kept(x));
  return run.Padded(x);
}

void Bottleneck::VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) {
  visit(in_.norm);
  if (attention_) visit(attention_->norm);
  visit(out_->norm);
}

void Bottleneck::ReserveScratch(Workspace& workspace) const {
  const int64_t rows = PaddedRows(workspace.max_tokens);
  workspace.gemm.Reserve(in_.linear, rows);
  if (attention_) workspace.gemm.Reserve(attention_->linear, rows);
  workspace.gemm.Reserve(out_->linear, rows);
}

int64_t Bottleneck::bytes() const {
  return in_.bytes() + (attention_ ? attention_->bytes() : 0) + out_->bytes();
}

}  // namespace attendant
