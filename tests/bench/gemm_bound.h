// The matrix products of a model alone, as plain calls of oneDNN: what an engine gets from it that
// loses nothing beside them. Other blocks, other splits or kernels of its own can beat it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/model_description.h"

namespace attendant::bench {

// Fused QKV, output and both feed-forward products of every layer, each one plain oneDNN matmul (no
// bias, no post-op) over its own packed weight, for T tokens rounded up to a multiple of the
// plan's. Operands are random and distinct for each layer, so that weights come from where they
// come from in a model.
class GemmBound {
 public:
  // kTeam: each product on all threads of oneDNN. kRows: each thread has its share of the rows,
  // with one-thread products.
  enum class Split { kTeam, kRows };
  // f32 -> f32, three bf16 -> f32 for each, bf16 -> bf16, s8 -> f32.
  enum class Type { kFloat32, kBFloat16x3, kBFloat16, kInt8 };

  struct Plan {
    ModelDescription model;
    Type type;
    int threads;
    Split split;
    int64_t row_multiple;  // 64; 16 tells more of a batch of fewer tokens
  };

  // For batches of these sizes; weights are laid out as oneDNN likes best for the largest. Throws
  // dnnl::error if oneDNN has no such product on this CPU.
  GemmBound(const Plan& plan, const std::vector<int64_t>& batch_tokens);
  ~GemmBound();

  // All layers once, for one of the sizes.
  void Run(int64_t tokens);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::bench
