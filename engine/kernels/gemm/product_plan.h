// The plan by which the products of a linear layer are computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/compute_type.h"

namespace attendant {

// The largest number of columns of y that are computed together. It is small enough that some
// threads can share even 16 rows, and that the rows of a block are never 4096 bytes apart, where
// they would compete for the same cache lines; and large enough for full speed.
inline constexpr int64_t kPanelWidth = 192;
// oneDNN packs weights in blocks of 64 columns; a panel that ends inside one has a slow tail.
inline constexpr int64_t kPanelWidthMultiple = 64;

// The choices for a layer, by the check and the timing when it was packed.
struct ProductPlan {
  int64_t in;
  int64_t out;
  int64_t k_block;                      // columns of x per product; the results are added
  std::vector<int64_t> tile_rows = {};  // numbers of rows of the products, descending
  // The kernels of those sizes by oneDNN's names, such as "brg:avx512_core_bf16", each once. Empty
  // if another GEMM is used.
  std::vector<std::string> implementations = {};
  Gemm gemm = Gemm::kOneDnn;              // not kAuto
  WeightType weights = WeightType::kF32;  // in which they are kept, of kF32; not kAuto
  // The speed of the AMX GEMM divided by that of oneDNN's; 0 if that was not timed, or
  // if their bits differ.
  double tiles_speedup = 0;
  bool exact = true;  // false if sums of int8 may saturate; see PanelKernels

  friend bool operator==(const ProductPlan&, const ProductPlan&) = default;
};

}  // namespace attendant
