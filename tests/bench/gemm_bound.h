// GemmBound, the matrix products of a model as plain calls of oneDNN. It bounds an engine that uses
// oneDNN in this way and loses no time on anything else. Other blocks, other splits or other
// kernels can beat it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/compute_type.h"
#include "tests/bench/product_widths.h"

namespace attendant::bench {

// The products of every layer. Each is one plain oneDNN matmul (no bias, no post-op) with its own
// packed weight, for T tokens rounded up to a multiple of the plan's: f32 -> f32, three times
// bf16 -> f32, bf16 -> bf16 or s8 -> f32. Operands are random and distinct for each layer, so that
// weights come from the same level of the memory hierarchy as in a model.
class GemmBound {
 public:
  // kTeam: all threads of oneDNN share each product. kRows: each thread has its share of the rows
  // and computes products with one thread.
  enum class Split { kTeam, kRows };

  struct Plan {
    int64_t layers;
    std::vector<Width> widths;  // of the products of a layer
    ComputeType type;
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
