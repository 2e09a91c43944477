// Normalisation of rows, alone or fused with the residual before it. Each row of y that is made
// here is written to y's operand, if it has one, while it is in cache.
#pragma once

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/linear_input.h"

namespace attendant {

enum class NormKind {
  kLayer,   // gamma (x - mean) / sqrt(variance + epsilon) + beta, with the biased variance: Ba et
            // al. 2016
  kRms,     // gamma x / sqrt(mean of squares + epsilon) + beta: Zhang and Sennrich 2019
  kAffine,  // gamma x + beta: Sun et al. 2020
};

// "layer", "rms", "affine".
const char* Name(NormKind kind);

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
