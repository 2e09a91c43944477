// The engine's products of a model alone, as its check left oneDNN's: beside those of GemmBound,
// what it costs that a row's bits depend on no other row.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"

namespace attendant::bench {

// The products that GemmBound has, but as the engine computes them with oneDNN's: in its panels,
// row tiles and K blocks, to float32. Their inputs are rounded or quantised before: only int8 has
// something beside its products, the scales of its results. Weights are distinct for each layer.
class EngineProducts {
 public:
  struct Plan {
    ModelDescription model;
    ComputeType type;
    int threads;
    bool share_rows;  // see GemmWorkspace::ShareRowsFrom
  };

  // For batches of up to `most_tokens`. Errors of PackedLinear::Pack.
  static absl::StatusOr<std::unique_ptr<EngineProducts>> Make(const Plan& plan,
                                                              int64_t most_tokens);
  ~EngineProducts();

  // All layers once, for T tokens rounded up to a multiple of kRowTile. The first run of another T
  // makes its inputs.
  void Run(int64_t tokens);

 private:
  class Impl;
  explicit EngineProducts(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::bench
