#include "engine/kernels/gemm/tile_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>

#include "absl/base/casts.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {
namespace {

using dnnl::memory;

// The sizes that a batch is cut into, the largest first. One row at a time always keeps the
// promise.
constexpr int64_t kTileRows[] = {256, 64, 16};
constexpr int64_t kLastResortRows = 1;
// The packed layout is asked for once, at this size.
constexpr int64_t kReferenceRows = 64;
// Different rows in a probe; coprime to the widths of the register blocks, so that each meets every
// place of a block.
constexpr int64_t kProbes = 5;

onednn::DataType ResultType(const PanelShape& shape) {
  return shape.element == onednn::DataType::s8 ? onednn::DataType::s32 : onednn::DataType::f32;
}

onednn::MatmulOperands OperandsOf(const PanelShape& shape, int64_t rows,
                                  const memory::desc& weights) {
  return {.x = onednn::RowMajor(shape.element, rows, shape.k_block, shape.k_block),
          .weights = weights,
          .y = onednn::RowMajor(ResultType(shape), rows, shape.width, shape.width),
          .out = shape.width,
          .has_bias = shape.has_bias,
          .add_to_y = false};
}

Product MakeProduct(const onednn::MatmulOperands& operands) {
  const dnnl::matmul::primitive_desc description = onednn::DescribeMatmul(operands);
  return {dnnl::matmul(description), description.src_desc(), description.dst_desc(),
          description.scratchpad_desc(), description.impl_info_str()};
}

TileKernel MakeTileKernel(const PanelShape& shape, int64_t rows, const memory::desc& weights) {
  onednn::MatmulOperands operands = OperandsOf(shape, rows, weights);
  TileKernel kernel{.rows = rows, .first = MakeProduct(operands), .next = {}};
  if (shape.products() == 1) return kernel;
  operands.has_bias = false;
  operands.add_to_y = true;
  kernel.next = MakeProduct(operands);
  return kernel;
}

// `bytes` of elements of this type.
AlignedBuffer<char> RandomElements(onednn::DataType type, int64_t bytes, uint32_t seed) {
  AlignedBuffer<char> elements(bytes);
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  const int64_t width = onednn::ByteWidth(type);
  for (int64_t at = 0; at + width <= bytes; at += width) {
    const float value = distribution(random);
    // The upper half of a float32 is a bfloat16; any byte is an int8.
    const char* first = reinterpret_cast<const char*>(&value);
    if (type == onednn::DataType::bf16) first += sizeof(float) - width;
    std::memcpy(elements.data() + at, first, width);
  }
  return elements;
}

// The operands that every candidate of one shape is tried with.
struct Probe {
  int64_t row_bytes;  // of one block
  int64_t weight_bytes;
  AlignedBuffer<char> rows;
  AlignedBuffer<char> weights;
  AlignedBuffer<char> bias;
};

int64_t RowBytes(const PanelShape& shape) {
  return shape.k_block * onednn::ByteWidth(shape.element);
}

Probe RandomProbe(const PanelKernels& kernels) {
  const PanelShape& shape = kernels.shape;
  const int64_t row_bytes = RowBytes(shape), weight_bytes = kernels.weight_bytes;
  return {row_bytes, weight_bytes,
          RandomElements(shape.element, shape.blocks() * kProbes * row_bytes, 1),
          RandomElements(shape.element, shape.blocks() * weight_bytes, 2),
          RandomElements(onednn::DataType::f32, shape.width * 4, 3)};
}

constexpr int8_t kLargestInt8 = 127;

// Packs a block of W, [k_block, width], which must be dense: oneDNN 2.6 packs no other int8.
void PackBlock(const PanelKernels& kernels, char* plain, char* packed) {
  const PanelShape& shape = kernels.shape;
  const dnnl::engine& engine = onednn::CpuEngine();
  memory from(onednn::RowMajor(shape.element, shape.k_block, shape.width, shape.width), engine,
              plain);
  memory to(kernels.weights, engine, packed);
  dnnl::stream stream(engine);
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

// A probe of int8 without a bias, whose elements are all the largest.
Probe LargestProbe(const PanelKernels& kernels) {
  const PanelShape& shape = kernels.shape;
  Probe probe{RowBytes(shape), kernels.weight_bytes,
              AlignedBuffer<char>(shape.blocks() * kProbes * RowBytes(shape)),
              AlignedBuffer<char>(shape.blocks() * kernels.weight_bytes), AlignedBuffer<char>(0)};
  std::fill_n(probe.rows.data(), probe.rows.size(), kLargestInt8);
  AlignedBuffer<char> plain(shape.k_block * shape.width);
  std::fill_n(plain.data(), plain.size(), kLargestInt8);
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    PackBlock(kernels, plain.data(), &probe.weights[block * kernels.weight_bytes]);
  }
  return probe;
}

// A probe of the columns from `first` on of a random weight with `columns` columns.
Probe ProbeOfColumns(const PanelKernels& kernels, int64_t first, int64_t columns) {
  const PanelShape& shape = kernels.shape;
  const int64_t element = onednn::ByteWidth(shape.element);
  const int64_t rows = shape.blocks() * shape.k_block;
  const AlignedBuffer<char> all = RandomElements(shape.element, rows * columns * element, 4);
  AlignedBuffer<char> plain(rows * shape.width * element);
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(&plain[r * shape.width * element], &all[(r * columns + first) * element],
                shape.width * element);
  }
  Probe probe = RandomProbe(kernels);
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    PackBlock(kernels, &plain[block * shape.k_block * shape.width * element],
              &probe.weights[block * kernels.weight_bytes]);
  }
  const AlignedBuffer<char> bias = RandomElements(onednn::DataType::f32, columns * 4, 3);
  std::copy_n(bias.data() + first * 4, shape.width * 4, probe.bias.data());
  return probe;
}

// One product through the kernel, into y.
void TryProduct(const TileKernel& kernel, const PanelKernels& kernels, int64_t index, Probe& probe,
                float* y) {
  const Factors blocks = kernels.shape.product(index);
  AlignedBuffer<char> x(kernel.rows * probe.row_bytes);
  for (int64_t r = 0; r < kernel.rows; ++r) {
    std::memcpy(&x[r * probe.row_bytes],
                &probe.rows[(blocks.x * kProbes + r % kProbes) * probe.row_bytes], probe.row_bytes);
  }
  const Product& product = index == 0 ? kernel.first : kernel.next;
  AlignedBuffer<char> scratchpad(static_cast<int64_t>(product.scratchpad.get_size()));
  const dnnl::engine& engine = onednn::CpuEngine();
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(product.x, engine, x.data())},
      {DNNL_ARG_WEIGHTS,
       memory(kernels.weights, engine, &probe.weights[blocks.weights * probe.weight_bytes])},
      {DNNL_ARG_DST, memory(product.y, engine, y)},
      {DNNL_ARG_SCRATCHPAD, memory(product.scratchpad, engine, scratchpad.data())}};
  if (kernels.shape.has_bias && index == 0) {
    const memory::desc bias =
        onednn::RowMajor(onednn::DataType::f32, 1, kernels.shape.width, kernels.shape.width);
    arguments[DNNL_ARG_BIAS] = memory(bias, engine, probe.bias.data());
  }
  dnnl::stream stream(engine);
  product.primitive.execute(stream, arguments);
  stream.wait();
}

TileCandidate Try(const TileKernel& kernel, const PanelKernels& kernels, Probe& probe) {
  const PanelShape& shape = kernels.shape;
  AlignedBuffer<float> y(kernel.rows * shape.width);
  for (int64_t i = 0; i < shape.products(); ++i) TryProduct(kernel, kernels, i, probe, y.data());
  return {kernel.rows, std::vector<float>(y.data(), y.data() + y.size())};
}

// Whether each kernel's sums of the largest elements are right.
bool SumsAreExact(const PanelKernels& kernels) {
  const auto sum = static_cast<int32_t>(kernels.shape.in * kLargestInt8 * kLargestInt8);
  Probe probe = LargestProbe(kernels);
  return std::all_of(kernels.tiles.begin(), kernels.tiles.end(), [&](const TileKernel& kernel) {
    const TileCandidate candidate = Try(kernel, kernels, probe);
    return std::all_of(candidate.results.begin(), candidate.results.end(),
                       [&](float bits) { return absl::bit_cast<int32_t>(bits) == sum; });
  });
}

std::unique_ptr<const PanelKernels> MakeAmxKernels(const PanelShape& shape) {
  auto kernels = std::make_unique<PanelKernels>();
  kernels->shape = shape;
  kernels->weight_bytes = AmxWeightBytes(shape.amx_element(), shape.k_block, shape.width);
  for (const int64_t rows : kTileRows) kernels->tiles.push_back({.rows = rows});
  kernels->all_agree = true;
  return kernels;
}

std::unique_ptr<const PanelKernels> MakePanelKernels(const PanelShape& shape) {
  if (shape.uses_amx) return MakeAmxKernels(shape);
  const onednn::SingleThreaded single_threaded;
  auto kernels = std::make_unique<PanelKernels>();
  kernels->shape = shape;
  const memory::desc any = onednn::AnyLayout(shape.element, shape.k_block, shape.width);
  kernels->weights = onednn::DescribeMatmul(OperandsOf(shape, kReferenceRows, any)).weights_desc();
  kernels->weight_bytes = static_cast<int64_t>(kernels->weights.get_size());

  std::vector<TileKernel> tiles;
  std::vector<TileCandidate> candidates;
  Probe probe = RandomProbe(*kernels);
  for (const int64_t rows : kTileRows) {
    tiles.push_back(MakeTileKernel(shape, rows, kernels->weights));
    candidates.push_back(Try(tiles.back(), *kernels, probe));
  }
  for (const size_t i : AgreeingCandidates(candidates, kProbes, shape.width)) {
    kernels->tiles.push_back(tiles[i]);
  }
  kernels->all_agree = kernels->tiles.size() == tiles.size();
  if (kernels->tiles.empty()) {
    kernels->tiles.push_back(MakeTileKernel(shape, kLastResortRows, kernels->weights));
  }
  if (shape.element == onednn::DataType::s8) kernels->exact = SumsAreExact(*kernels);
  return kernels;
}

// Shapes are as few as the distinct layers of the models that a process has loaded.
class Table {
 public:
  absl::StatusOr<const PanelKernels*> Find(const PanelShape& shape) {
    const absl::MutexLock lock(&mutex_);
    std::unique_ptr<const PanelKernels>& entry = entries_[shape];
    try {
      if (entry == nullptr) entry = MakePanelKernels(shape);
    } catch (const dnnl::error& error) {
      entries_.erase(shape);
      return absl::InternalError(absl::StrCat("oneDNN refused a product of ", shape.in, " by ",
                                              shape.width, ": ", error.what()));
    }
    return entry.get();
  }

 private:
  absl::Mutex mutex_;
  std::map<PanelShape, std::unique_ptr<const PanelKernels>> entries_ ABSL_GUARDED_BY(mutex_);
};

bool SameBits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

}  // namespace

std::vector<size_t> AgreeingCandidates(const std::vector<TileCandidate>& candidates, int64_t probes,
                                       int64_t width) {
  // The smallest size that is uniform in itself leads: it wastes the least on a short batch.
  const TileCandidate* base = nullptr;
  std::vector<size_t> kept;
  for (size_t i = candidates.size(); i-- > 0;) {
    const TileCandidate& candidate = candidates[i];
    const TileCandidate& other = base != nullptr ? *base : candidate;
    bool agrees = true;
    for (int64_t r = 0; r < candidate.rows && agrees; ++r) {
      agrees = SameBits(&candidate.results[r * width], &other.results[r % probes * width], width);
    }
    if (!agrees) continue;
    base = &other;
    kept.push_back(i);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

absl::StatusOr<int64_t> ChooseKBlock(
    absl::Span<const int64_t> k_blocks,
    absl::FunctionRef<absl::StatusOr<bool>(int64_t k_block)> is_clean) {
  if (k_blocks.size() == 1) return k_blocks.front();
  for (const int64_t k_block : k_blocks) {
    const absl::StatusOr<bool> clean = is_clean(k_block);
    if (!clean.ok()) return clean.status();
    if (*clean) return k_block;
  }
  return k_blocks.front();
}

bool GiveSameBits(const PanelKernels& wide, const PanelKernels& narrow) {
  if (wide.shape.uses_amx) return true;  // by construction
  const onednn::SingleThreaded single_threaded;
  const int64_t width = wide.shape.width, slice = narrow.shape.width;
  if (width < slice) return false;
  Probe whole = ProbeOfColumns(wide, 0, width);
  const TileCandidate expected = Try(wide.tiles.back(), wide, whole);
  for (int64_t first = 0; first + slice <= width; first += kPanelWidthMultiple) {
    Probe columns = ProbeOfColumns(narrow, first, width);
    const TileCandidate result = Try(narrow.tiles.back(), narrow, columns);
    for (int64_t r = 0; r < std::min(expected.rows, result.rows); ++r) {
      const float* row = &expected.results[r * width + first];
      if (!SameBits(&result.results[r * slice], row, slice)) return false;
    }
  }
  return true;
}

absl::StatusOr<const PanelKernels*> FindPanelKernels(const PanelShape& shape) {
  static Table* const table = new Table;
  return table->Find(shape);
}

}  // namespace attendant
