// Self-tests of a panel's kernels: which row tiles agree bit by bit, and whether int8 sums are
// exact. They pack and multiply random or extreme inputs with the same code as in production.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Returns the indices of the kernels' tiles, in descending order of rows, that give a row of x the
// same bits at any position in any of them. This and the next two functions throw dnnl::error if
// oneDNN fails.
std::vector<size_t> AgreeingTiles(const PanelKernels& kernels);

// Whether the int8 sums of the largest elements are exact with every tile.
bool SumsAreExact(const PanelKernels& kernels);

// Whether columns have the same bits in panels of `wide` and of `narrow`, which differ only in
// their width.
bool GiveSameBits(const PanelKernels& wide, const PanelKernels& narrow);

// Returns the sum block with which the vector GEMM gives the bits of `reference`, which are
// oneDNN's float32 kernels, or 0 if there is none.
int64_t FindSumBlock(const PanelKernels& reference);

// The output of one row tile in a self-test. `results` is [rows, panel width], of 4-byte elements.
// Row r of the input was test row r modulo the number of test rows.
struct TileCandidate {
  int64_t rows;
  std::vector<float> results;
};
// Returns the indices of the candidates to keep, in descending order of rows. Exposed for testing.
std::vector<size_t> AgreeingCandidates(const std::vector<TileCandidate>& candidates, int64_t probes,
                                       int64_t width);

}  // namespace attendant
