// Kernels of matrix products that run on one thread and a fixed number of rows (a row tile), and
// the shapes of their inputs.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/compute_type.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/onednn.h"

namespace attendant {

// The inputs of one product: the numbers of a block of x and a block of W; see PanelShape.
struct Factors {
  int64_t x;
  int64_t weights;
};

// The shape of a panel, which is some adjacent columns of y = x W^T + b of a linear layer. x is
// split into K blocks of adjacent columns, and each K block into one part, or into a high and a low
// part: block `parts` * k + p, a dense [rows, k_block], is part p of K block k. W is split
// likewise. y [rows, width] is float32, or int32 if x is int8. It is dense, because oneDNN 2 is
// slow for other layouts.
struct PanelShape {
  int64_t in;                                        // columns of x
  int64_t width;                                     // columns of the panel
  int64_t k_block;                                   // divides `in`
  int64_t parts = 1;                                 // parts of x and W: 1 or 2
  onednn::DataType element = onednn::DataType::f32;  // the element type of x and W
  bool has_bias = true;
  Gemm gemm = Gemm::kOneDnn;             // never kAuto
  WeightType stored = WeightType::kF32;  // the weight type of the vector GEMM's float32 products
  bool like_onednn = false;              // whether these products must have the bits of oneDNN

  // The types of W and x for the AMX GEMM and the vector GEMM.
  GemmElement gemm_element() const {
    if (element == onednn::DataType::s8) return GemmElement::kInt8;
    if (element == onednn::DataType::bf16) return GemmElement::kBFloat16Both;
    if (stored == WeightType::kBf16) return GemmElement::kBFloat16;
    return stored == WeightType::kF16 ? GemmElement::kFloat16 : GemmElement::kFloat32;
  }
  // The bytes of a row in one block of x.
  int64_t block_row_bytes() const { return k_block * onednn::ByteWidth(element); }
  // The number of blocks of x, and of W.
  int64_t blocks() const { return in / k_block * parts; }
  // y is the sum of these products, added in this order. With two parts, the product of the low
  // parts is omitted: it is no larger than the rounding error.
  int64_t products() const { return in / k_block * (parts == 1 ? 1 : 3); }
  Factors product(int64_t index) const {
    if (parts == 1) return {index, index};
    constexpr Factors kOfParts[] = {{1, 0}, {0, 1}, {0, 0}};
    const int64_t high = index / 3 * 2;
    return {high + kOfParts[index % 3].x, high + kOfParts[index % 3].weights};
  }
  friend auto operator<=>(const PanelShape&, const PanelShape&) = default;
};

// A oneDNN product of a row tile of x and one block of W.
struct Product {
  dnnl::matmul primitive;
  dnnl::memory::desc x;
  dnnl::memory::desc y;
  dnnl::memory::desc scratchpad;
  // oneDNN's name, such as "brg:avx512_core_bf16", or the kernel of the vector GEMM.
  std::string implementation;
};

// The kernel for row tiles of one size: y [rows, width] = x [rows, in] W + b, computed as a
// sequence of products of blocks.
struct TileKernel {
  int64_t rows;
  // oneDNN products. Empty for the other GEMMs, which need no preparation, except for the name.
  Product first = {};  // y = x W + b
  Product next = {};   // y += x W; empty if there is only one product
};

// The kernels of a panel shape. Immutable; they live as long as the process.
struct PanelKernels {
  PanelShape shape;
  dnnl::memory::desc weights;  // the layout of a block for oneDNN's kernels of this shape
  int64_t block_bytes;         // from one packed block to the next, a multiple of 64
  // At least one, in descending order of rows. A row's bits depend neither on the kernel that
  // computes it nor on its position in the tile.
  std::vector<TileKernel> tiles;
  // Whether every size that was tried passed the self-test, apart from those below kRowTile.
  bool all_agree;
  // Only for the vector GEMM. 0 if no sum block gives the bits that like_onednn requires.
  int64_t sum_block = kVectorSumBlock;
  // False if int8 sums may saturate: kernels for CPUs without VNNI add pairs of products in 16
  // bits. The self-test multiplies the largest elements.
  bool exact = true;
};

}  // namespace attendant
