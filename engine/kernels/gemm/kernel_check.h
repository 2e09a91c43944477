// The checks of a panel's kernels, by products of random or of extreme operands: which row tiles
// agree bit by bit, and whether sums of int8 are exact. They pack and multiply as service does.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Returns the indices of the kernels' tiles, which are in descending order of rows, whose results
// have the same bits for a row of x, wherever it is in a tile. This and the next two throw
// dnnl::error if oneDNN refuses.
std::vector<size_t> AgreeingTiles(const PanelKernels& kernels);

// Whether sums of int8 are right for the largest elements, with every tile.
bool SumsAreExact(const PanelKernels& kernels);

// Whether columns that panels of the one width can compute have the same bits in narrower panels of
// a shape that is alike otherwise.
bool GiveSameBits(const PanelKernels& wide, const PanelKernels& narrow);

// Returns the sum block with which the vector GEMM gives the bits of these kernels, which are
// oneDNN's of float32, or 0 if there is none.
int64_t FindSumBlock(const PanelKernels& reference);

// The result of one row tile in the check: `results` are the rows that it computed, each of as many
// elements of four bytes as the panel is wide, from an input whose row r is probe r modulo the
// number of probes.
struct TileCandidate {
  int64_t rows;
  std::vector<float> results;
};
// Returns the indices of the candidates to keep, which are in descending order of rows. Exposed for
// its test.
std::vector<size_t> AgreeingCandidates(const std::vector<TileCandidate>& candidates, int64_t probes,
                                       int64_t width);

}  // namespace attendant
