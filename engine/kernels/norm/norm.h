// Normalisation of rows, optionally fused with the residual sum before it. If y has a packed GEMM
// input, each row is also written there while it is in cache.
#pragma once

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// `gamma` is [E]; `beta` is [E], or empty for zeros. Does not own them.
struct LayerNormWeights {
  absl::Span<const float> gamma;
  absl::Span<const float> beta;
  float epsilon;
  NormKind kind = NormKind::kLayer;
};

// Computes y = norm(x) row by row; y may be x. x is [T, E]. y is [T, E] or has further rows, which
// are not written. Sums are pairwise in float32, or in float64, never sequential in float32.
void LayerNorm(const ThreadTeam& team, MatrixView<const float> x, const LayerNormWeights& weights,
               const PreparedRows& y);

// Computes the norm of each head of each row in place, on the calling thread. `heads` is
// [rows, n E], where E is the width of the weights.
void NormalizeHeads(MatrixView<float> heads, const LayerNormWeights& weights);

// Computes y = norm(x + residual); y may be x or residual.
void AddLayerNorm(const ThreadTeam& team, MatrixView<const float> x,
                  MatrixView<const float> residual, const LayerNormWeights& weights,
                  const PreparedRows& y);

// Computes branch = norm(branch) and y = x + branch; y may be x.
void AddNormalized(const ThreadTeam& team, MatrixView<const float> x, MatrixView<float> branch,
                   const LayerNormWeights& weights, MatrixView<float> y);

// Computes y = x * factor element by element; y may be either.
void Multiply(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> factor,
              const PreparedRows& y);

// Computes y = x + residual; y may be either.
void Add(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> residual,
         MatrixView<float> y);

}  // namespace attendant
