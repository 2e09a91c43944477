#include "engine/layers/extras/bottleneck.h"

#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

namespace attendant {

MatrixView<float> Bottleneck::NormedLinear::Apply(const LinearInput& x, MatrixView<float> target,
                                                  const LayerRun& run) const {
  const MatrixView<float> y = run.Kept(target);
  run.workspace.gemm.Apply(linear, x, y);
  LayerNorm(run.workspace.team, y, run.workspace.norm(norm), y);
  return y;
}

Bottleneck::Bottleneck(const std::string& prefix, const LayerShape& shape, WeightLoader& loader) {
  const int64_t width = shape.extras.bottleneck.width;
  const auto load = [&](const std::string& name) {
    return NormedLinear{loader.ReadLinear(name, width, shape.hidden_size),
                        loader.AddNorm(name + "_norm", width, shape.norms)};
  };
  in_ = load(prefix + "bottleneck_in");
  if (shape.extras.bottleneck.values_from_outside) {
    attention_ = load(prefix + "bottleneck_attention");
  }
}

void Bottleneck::LoadOut(const std::string& prefix, const LayerShape& shape, WeightLoader& loader) {
  out_ = loader.ReadLinear(prefix + "bottleneck_out", shape.hidden_size,
                           shape.extras.bottleneck.width);
}

void Bottleneck::Begin(BlockRows& rows, const LayerRun& run) const {
  const PreparedRows x = rows.entry;
  rows.residual = in_.Apply(x, run.workspace.activations.inner(), run);
  rows.entry = attention_.linear
                   ? attention_.Apply(x, run.workspace.activations.inner_queries(), run)
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
  run.workspace.gemm.Apply(out_, x, y);
  return y;
}

}  // namespace attendant
