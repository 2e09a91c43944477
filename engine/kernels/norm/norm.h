// Normalisation of rows, alone or fused with the residual before it. Each row of y is also written
// to the operand of y, if there is one, while it is in cache.
#pragma once

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// gamma: [E]; beta: [E], or empty for zeros. These are views; the caller owns both.
struct LayerNormWeights {
  absl::Span<const float> gamma;
  absl::Span<const float> beta;
  float epsilon;
  NormKind kind = NormKind::kLayer;
};

// Computes y = norm(x) row by row, for the kind of norm that the weights have; y may be x. x, y:
// [T, E]; if y has more rows, these stay unchanged. Sums are float32 pairwise or float64, never a
// running float32 sum.
void LayerNorm(const ThreadTeam& team, MatrixView<const float> x, const LayerNormWeights& weights,
               const PreparedRows& y);

// Computes the norm of each head of each row in place. heads: [T, n E], where E is the width of the
// weights.
void NormalizeHeads(const ThreadTeam& team, MatrixView<float> heads,
                    const LayerNormWeights& weights);

// Computes y = norm(x + residual); y may be x or residual.
void AddLayerNorm(const ThreadTeam& team, MatrixView<const float> x,
                  MatrixView<const float> residual, const LayerNormWeights& weights,
                  const PreparedRows& y);

// Computes y = x * factor element by element; y may be either.
void Multiply(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> factor,
              const PreparedRows& y);

// Computes y = x + residual; y may be either.
void Add(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> residual,
         MatrixView<float> y);

}  // namespace attendant
