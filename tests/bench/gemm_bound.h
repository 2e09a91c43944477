// GemmBound, the matrix products of a model as plain calls of oneDNN. It bounds an engine that uses
// oneDNN in this way and loses no time on anything else. Other blocks, other splits or other
// kernels can beat it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/model_description.h"

namespace attendant::bench {

// The fused QKV, the output and both feed-forward products of every layer. Each is one plain oneDNN
// matmul (no bias, no post-op) with its own packed weight, for T tokens rounded up to a multiple of
// the plan's. Operands are random and distinct for each layer, so that weights come from the same
// level of the memory hierarchy as in a model.
class GemmBound {
 public:
  // kTeam: all threads of oneDNN share each product. kRows: each thread has its share of the rows
  // and computes products with one thread.
  enum class Split { kTeam, kRows };
  // f32 -> f32, three bf16 -> f32 for each, bf16 -> bf16, s8 -> f32.
  enum class Type { kFloat32, kBFloat16x3, kBFloat16, kInt8 };

  struct Plan {
    ModelDescription model;
    Type type;
    int threads;
    Split split;
    int64_t row_multiple;  // 64; 16 is more informative for batches of few tokens
  };

  // Makes the products for batches of these sizes. Weights have the layout that oneDNN prefers for
  // the largest. Throws dnnl::error if oneDNN has no such product on this CPU.
  GemmBound(const Plan& plan, const std::vector<int64_t>& batch_tokens);
  ~GemmBound();

  // Computes all layers once, for one of the sizes.
  void Run(int64_t tokens);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::bench
