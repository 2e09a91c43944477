#include "engine/layers/extras/bottleneck.h"

#include "engine/base/status_macros.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

namespace attendant {

absl::StatusOr<Bottleneck::NormedLinear> Bottleneck::NormedLinear::Load(const std::string& name,
                                                                        int64_t out, int64_t in,
                                                                        const LayerShape& shape,
                                                                        WeightLoader& loader) {
  ASSIGN_OR_RETURN(PackedLinear linear, loader.ReadLinear(name, out, in));
  ASSIGN_OR_RETURN(const int norm, loader.AddNorm(name + "_norm", out, shape.norms));
  return NormedLinear{std::move(linear), norm};
}

MatrixView<float> Bottleneck::NormedLinear::Apply(const LinearInput& x, MatrixView<float> target,
                                                  const LayerRun& run) const {
  const MatrixView<float> y = run.Kept(target);
  run.workspace.gemm.Apply(linear, x, y);
  LayerNorm(run.workspace.team, y, run.workspace.norm(norm), y);
  return y;
}

absl::StatusOr<Bottleneck> Bottleneck::Load(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  const BottleneckShape& bottleneck = shape.extras.bottleneck;
  const auto load = [&](const char* name) {
    return NormedLinear::Load(prefix + name, bottleneck.width, shape.hidden_size, shape, loader);
  };
  ASSIGN_OR_RETURN(NormedLinear in, load("bottleneck_in"));
  Bottleneck loaded(std::move(in));
  if (!bottleneck.values_from_outside) return loaded;
  ASSIGN_OR_RETURN(loaded.attention_, load("bottleneck_attention"));
  return loaded;
}

absl::StatusOr<Bottleneck> Bottleneck::WithOut(const std::string& prefix, const LayerShape& shape,
                                               WeightLoader& loader) && {
  ASSIGN_OR_RETURN(out_, loader.ReadLinear(prefix + "bottleneck_out", shape.hidden_size,
                                           shape.extras.bottleneck.width));
  return std::move(*this);
}

void Bottleneck::Begin(BlockRows& rows, const LayerRun& run) const {
  const PreparedRows x = rows.entry;
  rows.residual = in_.Apply(x, run.workspace.activations.inner(), run);
  rows.entry = attention_ ? attention_->Apply(x, run.workspace.activations.inner_queries(), run)
                          : rows.residual;
}

void Bottleneck::KeepSelectedRows(const LayerRun& run) const {
  CompactRows(run.selected_rows, run.workspace.activations.hidden());
}

MatrixView<float> Bottleneck::Residual(MatrixView<float> /*x*/, const LayerRun& run) const {
  return run.Kept(run.workspace.activations.hidden());
}

MatrixView<float> Bottleneck::Forward(const LinearInput& x, const LayerRun& run) const {
  const MatrixView<float> y = run.Kept(run.workspace.activations.outer());
  run.workspace.gemm.Apply(*out_, x, y);
  return y;
}

}  // namespace attendant
