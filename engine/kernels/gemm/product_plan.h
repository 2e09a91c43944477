// The plan by which the products of a linear layer are computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/compute_type.h"

namespace attendant {

// The largest number of columns of y that are computed together. Small enough that several threads
// can share even 16 rows, and that the rows of a block are never 4096 bytes apart, where they would
// compete for the same cache lines. Large enough for full speed.
inline constexpr int64_t kPanelWidth = 192;
// oneDNN packs weights in blocks of 64 columns; a panel that ends inside one has a slow tail.
inline constexpr int64_t kPanelWidthMultiple = 64;

// The choices that self-tests and benchmarks made for a layer when it was packed.
struct ProductPlan {
  int64_t in;
  int64_t out;
  int64_t k_block;                      // columns of x per product; the results are added
  std::vector<int64_t> tile_rows = {};  // sizes of the row tiles, descending
  // The distinct implementations of these tiles: oneDNN's, such as "brg:avx512_core_bf16", or the
  // kernel of the vector GEMM, such as "avx2" or "smmla". Empty for the AMX GEMM.
  std::vector<std::string> implementations = {};
  Gemm gemm = Gemm::kOneDnn;              // never kAuto
  WeightType weights = WeightType::kF32;  // only for kF32; never kAuto
  // The measured speedup of the AMX GEMM over oneDNN. 0 if it was not measured or the bits differ.
  double tiles_speedup = 0;
  bool exact = true;  // false if int8 sums may saturate; see PanelKernels

  friend bool operator==(const ProductPlan&, const ProductPlan&) = default;
};

}  // namespace attendant
