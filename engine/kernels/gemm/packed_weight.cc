#include "engine/kernels/gemm/packed_weight.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/data_type.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/gemm/gemm_choice.h"
#include "engine/kernels/gemm/kernel_check.h"
#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

static_assert(kPanelWidth <= kMostAmxColumns && kPanelWidth % kPanelWidthMultiple == 0);

// Returns the K blocks to try, the best one first. AMX products of bfloat16 sum K in an order that
// depends on the number of rows, unless K is short, so blocks shorter than K are first there. They
// also prevent rows of x from aliasing in the caches. Emulation uses such blocks wherever possible,
// so that they are tested on any machine.
std::vector<int64_t> KBlocks(const ComputeMode& mode, int64_t in) {
  constexpr int64_t kLongestBlock = 768;
  std::vector<int64_t> blocks;
  if (RoundsElementwise(mode)) {
    for (const int64_t block :
         {kLongestBlock, int64_t{512}, int64_t{384}, int64_t{256}, int64_t{128}}) {
      if (block < in && in % block == 0) blocks.push_back(block);
    }
  }
  const bool prefers_blocks = mode.emulate || (HasAmxUnits() && in > kLongestBlock);
  if (prefers_blocks && !blocks.empty()) {
    if (!mode.emulate) blocks.push_back(in);
    return blocks;
  }
  blocks.insert(blocks.begin(), in);
  return blocks;
}

onednn::DataType ElementOf(const ComputeMode& mode) {
  if (mode.type == ComputeType::kF32 || mode.emulate) return onednn::DataType::f32;
  return mode.type == ComputeType::kInt8 ? onednn::DataType::s8 : onednn::DataType::bf16;
}

// Returns the shape of a panel for the vector GEMM if `mode` uses it, otherwise for oneDNN.
PanelShape ShapeOf(const ComputeMode& mode, int64_t in, int64_t columns, int64_t k_block) {
  return {.in = in,
          .width = columns,
          .k_block = k_block,
          .parts = InputParts(mode),
          .element = ElementOf(mode),
          .has_bias = mode.type != ComputeType::kInt8,
          .gemm = UsesVectorGemm(mode) ? Gemm::kVector : Gemm::kOneDnn};
}

// Whether all elements are exact in this type. Most weights that are not differ in their first row.
bool FitsInto(DataType type, MatrixView<const float> weight) {
  AlignedBuffer<char> narrow(weight.cols * ByteWidth(type));
  AlignedBuffer<float> row(weight.cols);
  for (int64_t r = 0; r < weight.rows; ++r) {
    FromFloat(weight.row(r), weight.cols, type, narrow.data());
    ToFloat(type, narrow.data(), weight.cols, row.data());
    if (std::memcmp(row.data(), weight.row(r), weight.cols * sizeof(float)) != 0) return false;
  }
  return true;
}

WeightType TypeThatFits(MatrixView<const float> weight) {
  if (FitsInto(DataType::kBFloat16, weight)) return WeightType::kBf16;
  return FitsInto(DataType::kFloat16, weight) ? WeightType::kF16 : WeightType::kF32;
}

// Returns the number of columns of x per product. It is the same for all weights with this mode and
// number of inputs, so the layout of x does not depend on the weight. It is the first of several
// divisors of `in` for which all row tiles of a full panel agree. (If tiles of a narrower panel do
// not, that panel uses only the tiles that agree.) The first call creates kernels and runs their
// self-tests.
int64_t FindKBlock(const ComputeMode& mode, int64_t in) {
  return ChooseKBlock(KBlocks(mode, in), [&](int64_t block) {
    return FindPanelKernels(ShapeOf(mode, in, kPanelWidth, block)).all_agree;
  });
}

}  // namespace

absl::StatusOr<PackedLinear> PackedLinear::Pack(MatrixView<const float> weight,
                                                absl::Span<const float> bias,
                                                const ComputeMode& mode, const ThreadTeam& team,
                                                PageArena arena) {
  assert(bias.empty() || static_cast<int64_t>(bias.size()) == weight.rows);
  const onednn::SingleThreaded single_threaded;
  auto packed = std::make_shared<PackedWeight>();
  packed->mode = mode;
  try {
    packed->plan = {
        .in = weight.cols, .out = weight.rows, .k_block = FindKBlock(mode, weight.cols)};
    RETURN_IF_ERROR(packed->Choose(weight, team.size()));
    packed->FindKernels();
    packed->LayOut(arena);
    for (int64_t i = 0; i < weight.rows; ++i) packed->bias[i] = bias.empty() ? 0.0f : bias[i];
    packed->PackPanels(weight, team);
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN could not pack a weight of [", weight.rows,
                                            ", ", weight.cols, "]: ", error.what()));
  }
  return PackedLinear(std::move(packed));
}

const PanelKernels& PackedWeight::KernelsOf(int64_t columns) const {
  PanelShape shape = ShapeOf(mode, plan.in, columns, plan.k_block);
  shape.gemm = plan.gemm;
  shape.stored = plan.weights;
  shape.like_onednn = like_onednn_;
  return FindPanelKernels(shape);
}

absl::Status PackedWeight::Choose(MatrixView<const float> weight, int threads) {
  panel_width = PanelWidth(plan.out, 1);
  RETURN_IF_ERROR(ChooseGemm(mode, plan));
  Narrow(PanelWidth(plan.out, threads));
  ChooseStoredType(weight);
  return absl::OkStatus();
}

void PackedWeight::ChooseStoredType(MatrixView<const float> weight) {
  if (mode.type != ComputeType::kF32 || mode.gemm == Gemm::kOneDnn) return;
  plan.weights = mode.weights == WeightType::kAuto ? TypeThatFits(weight) : mode.weights;
  if (plan.weights == WeightType::kF32 || plan.gemm == Gemm::kVector) return;
  plan.gemm = Gemm::kVector;
  like_onednn_ = true;
  like_onednn_ = HasProductsLikeOneDnn();
  if (like_onednn_ || mode.weights != WeightType::kAuto) return;
  plan.gemm = Gemm::kOneDnn;
  plan.weights = WeightType::kF32;
}

bool PackedWeight::HasProductsLikeOneDnn() const {
  return absl::c_all_of(EndWidths(),
                        [&](int64_t columns) { return KernelsOf(columns).sum_block > 0; });
}

std::array<int64_t, 2> PackedWeight::EndWidths() const {
  return {std::min(panel_width, plan.out), (plan.out - 1) % panel_width + 1};
}

// Uses narrower panels if this does not change any bit.
void PackedWeight::Narrow(int64_t narrower) {
  if (narrower >= std::min(panel_width, plan.out) || plan.out % narrower != 0) return;
  const PanelKernels& narrow = KernelsOf(narrower);
  const bool agree = narrow.all_agree && absl::c_all_of(EndWidths(), [&](int64_t columns) {
                       const PanelKernels& wide = KernelsOf(columns);
                       return wide.all_agree && GiveSameBits(wide, narrow);
                     });
  if (agree) panel_width = narrower;
}

void PackedWeight::FindKernels() {
  std::set<std::string> implementations;
  for (int64_t begin = 0; begin < plan.out; begin += panel_width) {
    const PanelKernels& kernels = KernelsOf(std::min(panel_width, plan.out - begin));
    panels.push_back({begin, &kernels});
    plan.exact = plan.exact && kernels.exact;
    for (const TileKernel& tile : kernels.tiles) {
      implementations.insert({tile.first.implementation, tile.next.implementation});
    }
  }
  implementations.erase("");  // of GEMMs without a name and of absent products
  plan.implementations.assign(implementations.begin(), implementations.end());
  for (const TileKernel& tile : panels.front().kernels->tiles) plan.tile_rows.push_back(tile.rows);
}

// Allocates the memory of the panels.
void PackedWeight::LayOut(PageArena& arena) {
  bias = AlignedBuffer<float>(plan.out);
  if (mode.type == ComputeType::kInt8) column_scales = AlignedBuffer<float>(plan.out);
  for (const Panel& panel : panels) weight_bytes_ += panel.bytes();
  weights_ = arena.Allocate(weight_bytes_);
  char* storage = weights_.get();
  for (Panel& panel : panels) {
    panel.Place(storage, bias.data() + panel.begin);
    storage += panel.bytes();
  }
}

void PackedWeight::PackPanels(MatrixView<const float> weight, const ThreadTeam& team) {
  team.ParallelFor(static_cast<int64_t>(panels.size()),
                   [&](int, int64_t i) { PackPanel(weight, panels[i]); });
}

void PackedWeight::PackPanel(MatrixView<const float> weight, Panel& panel) {
  if (mode.type == ComputeType::kF32) {
    const int64_t row_bytes = weight.stride * static_cast<int64_t>(sizeof(float));
    return panel.Pack({reinterpret_cast<const char*>(weight.row(panel.begin)), row_bytes, 0});
  }
  const PanelShape& shape = panel.kernels->shape;
  const int64_t row_bytes = plan.in * onednn::ByteWidth(shape.element);
  const int64_t part_bytes = shape.width * row_bytes;
  AlignedBuffer<char> converted(shape.parts * part_bytes);
  AlignedBuffer<float> scratch(plan.in);
  for (int64_t r = 0; r < shape.width; ++r) {
    const float scale = ConvertWeight(mode, weight.row(panel.begin + r), plan.in, scratch.data(),
                                      {converted.data() + r * row_bytes, part_bytes});
    if (column_scales.size() > 0) column_scales[panel.begin + r] = scale;
  }
  panel.Pack({converted.data(), row_bytes, part_bytes});
}

int64_t ChooseKBlock(absl::Span<const int64_t> k_blocks,
                     absl::FunctionRef<bool(int64_t k_block)> is_clean) {
  if (k_blocks.size() == 1) return k_blocks.front();
  const auto found = absl::c_find_if(k_blocks, is_clean);
  return found == k_blocks.end() ? k_blocks.front() : *found;
}

}  // namespace attendant
