// One-thread matrix products of fixed sizes, and which of them agree bit by bit.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/kernels/gemm/amx_gemm.h"
#include "engine/kernels/onednn.h"

namespace attendant {

// Of one product: a block of x and one of W, by their numbers. See PanelShape.
struct Factors {
  int64_t x;
  int64_t weights;
};

// A panel of a linear layer: some neighbouring columns of y = x W^T + b. x comes in K blocks of
// neighbouring columns, and each K block in its parts, high and low or just one: block
// `parts` * k + p, a dense [rows, k_block], is part p of K block k. W too. y [rows, width] is
// float32, or int32 for x of int8, and dense: oneDNN 2 has its fast kernel for no other.
struct PanelShape {
  int64_t in;                                        // columns of x
  int64_t width;                                     // columns of the panel
  int64_t k_block;                                   // divides `in`
  int64_t parts = 1;                                 // of x and W: 1 or 2
  onednn::DataType element = onednn::DataType::f32;  // of x and W
  bool has_bias = true;
  bool uses_amx = false;  // the AMX GEMM in place of oneDNN's products; see amx_gemm.h

  AmxElement amx_element() const {
    return element == onednn::DataType::s8 ? AmxElement::kInt8 : AmxElement::kBf16;
  }
  int64_t blocks() const { return in / k_block * parts; }
  // Products that y is the sum of, in this order. Of two parts without that of the low ones, which
  // is no larger than what rounding leaves out.
  int64_t products() const { return in / k_block * (parts == 1 ? 1 : 3); }
  Factors product(int64_t index) const {
    if (parts == 1) return {index, index};
    constexpr Factors kOfParts[] = {{1, 0}, {0, 1}, {0, 0}};
    const int64_t high = index / 3 * 2;
    return {high + kOfParts[index % 3].x, high + kOfParts[index % 3].weights};
  }
  friend auto operator<=>(const PanelShape&, const PanelShape&) = default;
};

// One oneDNN product of some rows and one block.
struct Product {
  dnnl::matmul primitive;
  dnnl::memory::desc x;
  dnnl::memory::desc y;
  dnnl::memory::desc scratchpad;
  std::string implementation;  // by oneDNN's name, such as "brg:avx512_core_bf16"
};

// y[rows, width] = x[rows, in] W + b, one product of blocks after the other.
struct TileKernel {
  int64_t rows;
  // Only of oneDNN: the AMX GEMM needs nothing prepared.
  Product first = {};  // y = x W + b
  Product next = {};   // y += x W; only if there is more than one product
};

// All that is held for a panel shape. Immutable; lives as long as the process.
struct PanelKernels {
  PanelShape shape;
  dnnl::memory::desc weights;  // of one block: the layout that oneDNN's kernels of this shape read
  int64_t weight_bytes;        // of one block as it is packed
  // Descending by rows, at least one. A row's bits depend neither on the kernel that computed it
  // nor on its place there.
  std::vector<TileKernel> tiles;
  bool all_agree;  // every size that was tried is there
};

// Makes and checks the kernels of a shape at the first call, and finds them at later ones. Those
// of the AMX GEMM are clean by construction. Thread-safe. INTERNAL if oneDNN refuses.
// FAILED_PRECONDITION if sums of int8 are not exact: kernels for CPUs without VNNI add pairs of
// products in 16 bits.
absl::StatusOr<const PanelKernels*> FindPanelKernels(const PanelShape& shape);

// The first of `k_blocks` (at least one) that is clean, or else the first of all. Errors are those
// of `is_clean`.
absl::StatusOr<int64_t> ChooseKBlock(
    absl::Span<const int64_t> k_blocks,
    absl::FunctionRef<absl::StatusOr<bool>(int64_t k_block)> is_clean);

// Exposed for its test: indices of the candidates to keep. results[i] are the rows that candidate i
// (descending by size) computed from inputs whose row r is probe r % probes; each row has `width`
// elements of four bytes.
struct TileCandidate {
  int64_t rows;
  std::vector<float> results;
};
std::vector<size_t> AgreeingCandidates(const std::vector<TileCandidate>& candidates, int64_t probes,
                                       int64_t width);

}  // namespace attendant
