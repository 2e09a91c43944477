// EngineProducts, which computes only the products of a model, by oneDNN as the engine cuts them.
// Compared with GemmBound, they show the cost of the rule that the bits of a row depend on no other
// row.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"

namespace attendant::bench {

// The products of GemmBound, computed as the engine computes them with oneDNN: in its panels, row
// tiles and K blocks, to float32. Their inputs are rounded or quantised beforehand, so that only
// int8 does anything besides products, which is to scale its results. Weights are distinct for each
// layer.
class EngineProducts {
 public:
  struct Plan {
    ModelDescription model;
    ComputeType type;
    int threads;
    bool share_rows;  // see GemmWorkspace::ShareRowsFrom
  };

  // Makes the products for batches of up to `most_tokens`. Errors of PackedLinear::Pack.
  static absl::StatusOr<std::unique_ptr<EngineProducts>> Make(const Plan& plan,
                                                              int64_t most_tokens);
  ~EngineProducts();

  // Computes all layers once, for T tokens rounded up to a multiple of kRowTile. The first run of
  // another T makes its inputs.
  void Run(int64_t tokens);

 private:
  class Impl;
  explicit EngineProducts(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::bench
