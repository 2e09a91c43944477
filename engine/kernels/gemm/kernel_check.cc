#include "engine/kernels/gemm/kernel_check.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/base/casts.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/rounding.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/gemm/product_runner.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

// The number of distinct rows of x in a self-test. It is coprime to the sizes of register blocks,
// so that each row occurs at every position of a block.
constexpr int64_t kProbes = 5;

AlignedBuffer<char> RandomElements(onednn::DataType type, int64_t count, uint32_t seed) {
  const int64_t width = onednn::ByteWidth(type);
  AlignedBuffer<char> elements(count * width);
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  for (int64_t i = 0; i < count; ++i) {
    const float value = distribution(random);
    // The upper half of a float32 is a bfloat16; any byte is an int8.
    const char* first = reinterpret_cast<const char*>(&value);
    if (type == onednn::DataType::bf16) first += sizeof(float) - width;
    std::memcpy(elements.data() + i * width, first, width);
  }
  return elements;
}

AlignedBuffer<char> LargestElements(int64_t count) {
  AlignedBuffer<char> elements(count);
  std::fill_n(elements.data(), count, kLargestInt8);
  return elements;
}

// The inputs that all kernels in a comparison read.
struct Probe {
  AlignedBuffer<char> x;       // kProbes rows of each block of the shape
  AlignedBuffer<char> weight;  // [parts, columns, in]
  AlignedBuffer<float> bias;   // [columns]
  int64_t columns;
};

int64_t ElementsOfX(const PanelShape& shape) { return shape.blocks() * kProbes * shape.k_block; }

// Returns random inputs for a layer with this number of columns.
Probe RandomProbe(const PanelShape& shape, int64_t columns) {
  Probe probe = {RandomElements(shape.element, ElementsOfX(shape), 1),
                 RandomElements(shape.element, shape.parts * columns * shape.in, 2),
                 AlignedBuffer<float>(columns), columns};
  std::minstd_rand random(3);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  for (int64_t i = 0; i < columns; ++i) probe.bias[i] = distribution(random);
  return probe;
}

// Returns int8 inputs whose elements are all the largest.
Probe LargestProbe(const PanelShape& shape) {
  return {LargestElements(ElementsOfX(shape)), LargestElements(shape.width * shape.in),
          AlignedBuffer<float>(shape.width), shape.width};
}

// The columns of `probe` from `first` on that the kernels compute.
class ProbePanel {
 public:
  ProbePanel(const PanelKernels& kernels, Probe& probe, int64_t first = 0)
      : x_(probe.x), panel_{first, &kernels}, packed_(panel_.bytes()) {
    const int64_t row_bytes = kernels.shape.in * onednn::ByteWidth(kernels.shape.element);
    panel_.Place(packed_.data(), probe.bias.data() + first);
    panel_.Pack({probe.weight.data() + first * row_bytes, row_bytes, probe.columns * row_bytes});
    runner_.Reserve(kernels);
  }

  // Multiplies one full tile.
  TileCandidate Run(const TileKernel& tile) {
    const PanelShape& shape = panel_.kernels->shape;
    const int64_t row_bytes = shape.block_row_bytes();
    const int64_t block_bytes = PaddedRows(tile.rows) * row_bytes;
    AlignedBuffer<char> x(shape.blocks() * block_bytes);
    for (int64_t block = 0; block < shape.blocks(); ++block) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        std::memcpy(x.data() + block * block_bytes + r * row_bytes,
                    x_.data() + (block * kProbes + r % kProbes) * row_bytes, row_bytes);
      }
    }
    const MatrixView<float> y =
        runner_.Run(panel_, {&tile, 0, tile.rows}, {x.data(), row_bytes, block_bytes, nullptr});
    return {tile.rows, std::vector<float>(y.data, y.data + y.rows * y.cols)};
  }

 private:
  const AlignedBuffer<char>& x_;
  Panel panel_;
  AlignedBuffer<char> packed_;
  ProductRunner runner_;
};

bool SameBits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

}  // namespace

std::vector<size_t> AgreeingTiles(const PanelKernels& kernels) {
  Probe probe = RandomProbe(kernels.shape, kernels.shape.width);
  ProbePanel panel(kernels, probe);
  std::vector<TileCandidate> candidates;
  for (const TileKernel& tile : kernels.tiles) candidates.push_back(panel.Run(tile));
  return AgreeingCandidates(candidates, kProbes, kernels.shape.width);
}

std::vector<size_t> AgreeingCandidates(const std::vector<TileCandidate>& candidates, int64_t probes,
                                       int64_t width) {
  const auto agree = [&](const TileCandidate& candidate, const TileCandidate& base) {
    for (int64_t r = 0; r < candidate.rows; ++r) {
      const float* const row = &candidate.results[r * width];
      if (!SameBits(row, &base.results[r % probes * width], width)) return false;
    }
    return true;
  };
  // The reference is the smallest tile that agrees with itself, because it wastes the least on
  // short batches. It has every probe.
  const auto base =
      std::find_if(candidates.rbegin(), candidates.rend(), [&](const TileCandidate& candidate) {
        return candidate.rows >= probes && agree(candidate, candidate);
      });
  std::vector<size_t> kept;
  for (size_t i = 0; i < candidates.size() && base != candidates.rend(); ++i) {
    if (agree(candidates[i], *base)) kept.push_back(i);
  }
  return kept;
}

bool SumsAreExact(const PanelKernels& kernels) {
  const auto sum = static_cast<int32_t>(kernels.shape.in * kLargestInt8 * kLargestInt8);
  Probe probe = LargestProbe(kernels.shape);
  ProbePanel panel(kernels, probe);
  return std::all_of(kernels.tiles.begin(), kernels.tiles.end(), [&](const TileKernel& tile) {
    const TileCandidate candidate = panel.Run(tile);
    return std::all_of(candidate.results.begin(), candidate.results.end(),
                       [&](float bits) { return absl::bit_cast<int32_t>(bits) == sum; });
  });
}

bool GiveSameBits(const PanelKernels& wide, const PanelKernels& narrow) {
  if (wide.shape.gemm != Gemm::kOneDnn) return true;  // by construction
  const int64_t width = wide.shape.width, slice = narrow.shape.width;
  if (width < slice) return false;
  const onednn::SingleThreaded single_threaded;
  Probe probe = RandomProbe(wide.shape, width);
  const TileCandidate expected = ProbePanel(wide, probe).Run(wide.tiles.back());
  for (int64_t first = 0; first + slice <= width; first += kPanelWidthMultiple) {
    const TileCandidate result = ProbePanel(narrow, probe, first).Run(narrow.tiles.back());
    for (int64_t r = 0; r < std::min(expected.rows, result.rows); ++r) {
      const float* row = &expected.results[r * width + first];
      if (!SameBits(&result.results[r * slice], row, slice)) return false;
    }
  }
  return true;
}

int64_t FindSumBlock(const PanelKernels& reference) {
  const onednn::SingleThreaded single_threaded;
  const int64_t in = reference.shape.in, width = reference.shape.width;
  Probe probe = RandomProbe(reference.shape, width);
  const TileCandidate expected = ProbePanel(reference, probe).Run(reference.tiles.back());
  PanelKernels vector = {.shape = reference.shape,
                         .weights = {},
                         .block_bytes = VectorWeightBytes(GemmElement::kFloat32, in, width),
                         .tiles = {{.rows = expected.rows}},
                         .all_agree = true};
  vector.shape.gemm = Gemm::kVector;
  ProbePanel panel(vector, probe);
  std::vector<int64_t> blocks = {in, 1024, 512, 256};  // the most common ones in oneDNN 2.6.3
  constexpr int64_t kStep = 16;
  for (int64_t block = RoundUp(in, kStep); block > 0; block -= kStep) blocks.push_back(block);
  for (const int64_t block : blocks) {
    vector.sum_block = block;
    const TileCandidate found = panel.Run(vector.tiles.front());
    if (SameBits(found.results.data(), expected.results.data(), expected.rows * width)) {
      return block;
    }
  }
  return 0;
}

}  // namespace attendant
