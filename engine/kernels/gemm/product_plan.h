// How the products of a linear layer are made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/compute_type.h"

namespace attendant {

// Columns of y that are computed together, at most: few enough that some threads share even 16
// rows, and that the rows of a block are never 4096 bytes apart, where caches alias; enough for
// full speed.
inline constexpr int64_t kPanelWidth = 192;

// What the check and the timing chose for a layer when it was packed.
struct ProductPlan {
  int64_t in;
  int64_t out;
  int64_t k_block;                      // columns of x that one product takes; the sums are added
  std::vector<int64_t> tile_rows = {};  // rows of the products' sizes, descending
  // The kernels of those sizes by oneDNN's names, such as "brg:avx512_core_bf16", each once; none
  // of the AMX GEMM.
  std::vector<std::string> implementations = {};
  Gemm gemm = Gemm::kOneDnn;  // or kTiles
  // How many times as fast the AMX GEMM was as oneDNN's products; 0 if that was not timed, or if
  // their bits differ.
  double tiles_speedup = 0;

  friend bool operator==(const ProductPlan&, const ProductPlan&) = default;
};

}  // namespace attendant
