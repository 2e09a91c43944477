// Normalisation of rows, alone or fused with the residual before it. Each row of y that is made
// here is written to y's operand, if it has one, while it is in cache.
#pragma once

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/linear_input.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// gamma: [E]; beta: [E], or empty for zeros. Views: the caller owns both.
struct LayerNormWeights {
  absl::Span<const float> gamma;
  absl::Span<const float> beta;
  float epsilon;
  NormKind kind = NormKind::kLayer;
};

// y = norm(x) of the weights' kind, row by row; y may be x. x, y: [T, E], and y may have more rows,
// which stay as they are. Sums are float32 pairwise or float64, never one running float32.
void LayerNorm(const ThreadTeam& team, MatrixView<const float> x, const LayerNormWeights& weights,
               const PreparedRows& y);

// y = norm(x + residual); y may be x or residual.
void AddLayerNorm(const ThreadTeam& team, MatrixView<const float> x,
                  MatrixView<const float> residual, const LayerNormWeights& weights,
                  const PreparedRows& y);

// y = x * factor, element by element; y may be either.
void Multiply(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> factor,
              const PreparedRows& y);

// y = x + residual; y may be either.
void Add(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> residual,
         MatrixView<float> y);

}  // namespace attendant
