#include "engine/kernels/gemm/kernel_table.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/rounding.h"
#include "engine/kernels/gemm/kernel_check.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

using dnnl::memory;

// The sizes of row tiles, in descending order. With the short ones, a call of a few tokens takes
// less time. Tiles of one row always give equal bits.
constexpr int64_t kTileRows[] = {256, 64, 16, 8, 4};
constexpr int64_t kLastResortRows = 1;
// oneDNN chooses the packed layout once, for this number of rows.
constexpr int64_t kReferenceRows = 64;
constexpr int64_t kBlockAlignment = 64;  // of each block of the packed weights, in bytes

onednn::DataType ResultType(const PanelShape& shape) {
  return shape.element == onednn::DataType::s8 ? onednn::DataType::s32 : onednn::DataType::f32;
}

// Describes a product of a row tile of x and one block of W.
dnnl::matmul::primitive_desc Describe(const PanelShape& shape, int64_t rows,
                                      const memory::desc& weights, bool add_to_y) {
  const bool has_bias = shape.has_bias && !add_to_y;
  return onednn::DescribeMatmul(
      onednn::RowMajor(shape.element, rows, shape.k_block), weights,
      has_bias ? onednn::RowMajor(onednn::DataType::f32, 1, shape.width) : memory::desc(),
      onednn::RowMajor(ResultType(shape), rows, shape.width), add_to_y);
}

TileKernel MakeTileKernel(const PanelShape& shape, int64_t rows, const memory::desc& weights) {
  const auto make = [&](bool add_to_y) -> Product {
    const dnnl::matmul::primitive_desc description = Describe(shape, rows, weights, add_to_y);
    return {dnnl::matmul(description), description.src_desc(), description.dst_desc(),
            description.scratchpad_desc(), description.impl_info_str()};
  };
  return {
      .rows = rows, .first = make(false), .next = shape.products() > 1 ? make(true) : Product()};
}

// Returns the kernels of the AMX GEMM or the vector GEMM.
std::unique_ptr<PanelKernels> MakeOwnKernels(const PanelShape& shape) {
  auto kernels = std::make_unique<PanelKernels>();
  kernels->shape = shape;
  const int64_t bytes = shape.gemm == Gemm::kTiles
                            ? AmxWeightBytes(shape.gemm_element(), shape.k_block, shape.width)
                            : VectorWeightBytes(shape.gemm_element(), shape.k_block, shape.width);
  kernels->block_bytes = RoundUp(bytes, kBlockAlignment);
  for (const int64_t rows : kTileRows) {
    TileKernel& tile = kernels->tiles.emplace_back();
    tile.rows = rows;
    if (shape.gemm == Gemm::kVector) {
      tile.first.implementation = VectorKernelName(shape.gemm_element());
    }
  }
  kernels->all_agree = true;
  return kernels;
}

bool IsShort(const TileKernel& tile) { return tile.rows < kRowTile; }

// Keeps the tiles that agree. If none do, uses only tiles of kLastResortRows rows.
void KeepAgreeingTiles(PanelKernels& kernels) {
  std::vector<TileKernel> kept;
  for (const size_t i : AgreeingTiles(kernels)) kept.push_back(kernels.tiles[i]);
  kernels.all_agree = kept.size() - absl::c_count_if(kept, IsShort) ==
                      kernels.tiles.size() - absl::c_count_if(kernels.tiles, IsShort);
  if (kept.empty()) {
    kept.push_back(MakeTileKernel(kernels.shape, kLastResortRows, kernels.weights));
  }
  kernels.tiles = std::move(kept);
}

std::unique_ptr<PanelKernels> MakeOneDnnKernels(const PanelShape& shape) {
  const onednn::SingleThreaded single_threaded;
  auto kernels = std::make_unique<PanelKernels>();
  kernels->shape = shape;
  const memory::desc any = onednn::AnyLayout(shape.element, shape.k_block, shape.width);
  kernels->weights = Describe(shape, kReferenceRows, any, false).weights_desc();
  kernels->block_bytes =
      RoundUp(static_cast<int64_t>(kernels->weights.get_size()), kBlockAlignment);
  for (const int64_t rows : kTileRows) {
    TileKernel tile = MakeTileKernel(shape, rows, kernels->weights);
    // Other kernels than brgemm compute some numbers of rows in another order. A short tile has too
    // few elements for the self-test to notice every difference.
    if (IsShort(tile) && !absl::StartsWith(tile.first.implementation, "brg")) continue;
    kernels->tiles.push_back(std::move(tile));
  }
  KeepAgreeingTiles(*kernels);
  if (shape.element == onednn::DataType::s8) kernels->exact = SumsAreExact(*kernels);
  return kernels;
}

std::unique_ptr<const PanelKernels> MakePanelKernels(const PanelShape& shape) {
  if (shape.gemm == Gemm::kOneDnn) return MakeOneDnnKernels(shape);
  std::unique_ptr<PanelKernels> kernels = MakeOwnKernels(shape);
  if (!shape.like_onednn) return kernels;
  PanelShape reference = shape;
  reference.gemm = Gemm::kOneDnn;
  reference.stored = WeightType::kF32;
  reference.like_onednn = false;
  kernels->sum_block = FindSumBlock(*MakeOneDnnKernels(reference));
  return kernels;
}

// Never shrinks: a process loads models with only a few distinct layers.
struct Table {
  absl::Mutex mutex;
  std::map<PanelShape, std::unique_ptr<const PanelKernels>> entries ABSL_GUARDED_BY(mutex);
};

}  // namespace

const PanelKernels& FindPanelKernels(const PanelShape& shape) {
  static Table* const table = new Table;
  const absl::MutexLock lock(&table->mutex);
  std::unique_ptr<const PanelKernels>& entry = table->entries[shape];
  if (entry == nullptr) entry = MakePanelKernels(shape);
  return *entry;
}

}  // namespace attendant
