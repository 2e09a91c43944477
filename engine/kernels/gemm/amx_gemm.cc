#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/isa.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm/amx_gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/amx_tiles-inl.h"
#include "engine/kernels/simd-inl.h"
// clang-format on

#ifndef ATTENDANT_ENGINE_KERNELS_AMX_GEMM_CC_
#define ATTENDANT_ENGINE_KERNELS_AMX_GEMM_CC_
namespace attendant {
namespace {

// The packed weight: stretch after stretch of kStretchSteps steps in depth (the last one may be
// shorter), in each group after group of kGroupColumns columns, in each step after step two tiles
// side by side. RunAmxGemm reads it from the first byte to the last, once for every 32 rows.
constexpr int64_t kStepBytes = 64;  // of x and of a column of W
constexpr int64_t kTileBytes = 1024;
constexpr int64_t kStretchSteps = 8;  // 32 rows of x are 16 KiB
constexpr int64_t kGroupColumns = 32;
constexpr int64_t kGroupRows = 32;

int64_t ElementBytes(GemmElement element) { return element == GemmElement::kBFloat16Both ? 2 : 1; }
int64_t Steps(GemmElement element, int64_t in) { return in * ElementBytes(element) / kStepBytes; }
int64_t Groups(int64_t width) { return CeilDivide(width, kGroupColumns); }

}  // namespace
}  // namespace attendant
#endif  // ATTENDANT_ENGINE_KERNELS_AMX_GEMM_CC_

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET <= HWY_AVX3

static_assert(kLanes == kTileRows);

// How far ahead weights are prefetched into the L2 cache: about a stretch of a group. The next
// weight usually follows the end of this one in memory.
constexpr int64_t kBytesAhead = kStretchSteps * 2 * kTileBytes;
constexpr int64_t kCacheLine = 64;

// The sums of a group of columns: 2 x 2 tiles, one after the other.
constexpr int64_t kTileFloats = kTileBytes / 4;
constexpr int64_t kGroupFloats = 4 * kTileFloats;

// The destination of the sums of some rows and a group of columns.
struct Place {
  int64_t row;
  int64_t column;
  int64_t rows;
};

// Copies finished sums to y, a few rows at a time, between products of tiles, during which the
// vector units are idle.
class Delivery {
 public:
  explicit Delivery(const BlockGemm& product) : product_(product) {}

  void Begin(const float* sums, const Place& place) {
    sums_ = sums;
    place_ = place;
    row_ = 0;
  }

  void Deliver(int64_t rows) {
    for (const int64_t end = std::min(place_.rows, row_ + rows); row_ < end; ++row_) {
      for (int64_t half = 0; half < 2; ++half) DeliverVector(half);
    }
  }

  void Finish() { Deliver(place_.rows); }

 private:
  void DeliverVector(int64_t half) const {
    const int64_t lanes = static_cast<int64_t>(kLanes);
    const int64_t column = place_.column + half * lanes;
    const int64_t count = product_.width - column;
    if (count <= 0) return;
    const float* sums = sums_ + (row_ / kTileRows * 2 + half) * kTileFloats;
    float* y = product_.y + (place_.row + row_) * product_.y_stride + column;
    Floats sum = hn::Load(FloatTag(), sums + row_ % kTileRows * lanes);
    if (product_.bias != nullptr) sum = hn::Add(sum, LoadUpTo(product_.bias + column, count));
    if (product_.add_to_y) sum = hn::Add(sum, LoadUpTo(y, count));
    StoreUpTo(sum, y, count);
  }

  const BlockGemm& product_;
  const float* sums_ = nullptr;
  Place place_ = {};
  int64_t row_ = 0;
};

// Tiles 0 to 3 hold sums, tile 2 r + c those of tile row r and tile column c. Tiles 4 and 5 hold
// rows of x, and tiles 6 and 7 columns of W.
template <class Tiles>
class Multiplier {
 public:
  explicit Multiplier(const BlockGemm& product)
      : product_(product),
        steps_(Steps(product.element, product.in)),
        groups_(Groups(product.width)),
        delivery_(product) {}

  void Run() {
    const TileConfiguration configuration;
    int64_t row = 0;
    for (; row + kGroupRows <= product_.rows; row += kGroupRows) MultiplyRows<2>(row);
    if (row < product_.rows) MultiplyRows<1>(row);
    StoreSums();
    Deliver();
    delivery_.Finish();
  }

 private:
  // The sums that are still in the tiles, and their destination if they are finished.
  struct Pending {
    float* sums;
    bool finished;
    Place place;
  };

  template <int kRows>
  void MultiplyRows(int64_t row) {
    is_first_pass_ = row == 0;
    const char* weight = product_.weight;
    for (int64_t step = 0; step < steps_; step += kStretchSteps) {
      const int64_t count = std::min(kStretchSteps, steps_ - step);
      const char* x = product_.x + row * product_.x_row_bytes + step * kStepBytes;
      for (int64_t group = 0; group < groups_; ++group, weight += count * 2 * kTileBytes) {
        float* sums = sums_ + group * kGroupFloats;
        step == 0 ? Stretch<kRows, true>(x, weight, count, sums)
                  : Stretch<kRows, false>(x, weight, count, sums);
        pending_ = {sums, step + count == steps_, {row, group * kGroupColumns, kRows * kTileRows}};
      }
    }
  }

  // sums (+)= x W, for one stretch of the depth and one group of columns. The sums stay in the
  // tiles. The sums of the previous stretch are stored during the first step and copied to y during
  // the other steps.
  template <int kRows, bool kIsFirst>
  HWY_INLINE void Stretch(const char* x, const char* weight, int64_t steps, float* sums) {
    LoadTile<4>(x, product_.x_row_bytes);
    LoadTile<6>(weight, kTileRowBytes);
    Exchange<0, kIsFirst>(sums);
    Tiles::template MultiplyAdd<0, 4, 6>();
    LoadTile<7>(weight + kTileBytes, kTileRowBytes);
    Exchange<1, kIsFirst>(sums);
    Tiles::template MultiplyAdd<1, 4, 7>();
    if constexpr (kRows == 2)
      LoadTile<5>(x + kTileRows * product_.x_row_bytes, product_.x_row_bytes);
    Exchange<2, kIsFirst>(sums);
    if constexpr (kRows == 2) Tiles::template MultiplyAdd<2, 5, 6>();
    Exchange<3, kIsFirst>(sums);
    if constexpr (kRows == 2) Tiles::template MultiplyAdd<3, 5, 7>();
    FetchAhead(weight);
    Deliver();
    constexpr int64_t kShare = CeilDivide(kGroupRows, kStretchSteps - 1);
    for (int64_t step = 1; step < steps; ++step) {
      x += kStepBytes;
      weight += 2 * kTileBytes;
      MultiplyStep<kRows>(x, weight);
      FetchAhead(weight);
      delivery_.Deliver(kShare);
    }
    delivery_.Finish();
  }

  // For later rows, the weights are in the L2 cache.
  HWY_INLINE void FetchAhead(const char* weight) const {
    if (!is_first_pass_) return;
    for (int64_t line = 0; line < 2 * kTileBytes; line += kCacheLine) {
      __builtin_prefetch(weight + kBytesAhead + line, 0, 2);
    }
  }

  template <int kRows>
  HWY_INLINE void MultiplyStep(const char* x, const char* weight) const {
    LoadTile<4>(x, product_.x_row_bytes);
    LoadTile<6>(weight, kTileRowBytes);
    Tiles::template MultiplyAdd<0, 4, 6>();
    LoadTile<7>(weight + kTileBytes, kTileRowBytes);
    Tiles::template MultiplyAdd<1, 4, 7>();
    if constexpr (kRows == 2) {
      LoadTile<5>(x + kTileRows * product_.x_row_bytes, product_.x_row_bytes);
      Tiles::template MultiplyAdd<2, 5, 6>();
      Tiles::template MultiplyAdd<3, 5, 7>();
    }
  }

  // Stores the sums of the previous stretch from the tile, and loads the sums of this one.
  template <int kTile, bool kIsFirst>
  HWY_INLINE void Exchange(const float* sums) const {
    StoreTile<kTile>(pending_.sums + kTile * kTileFloats, kTileRowBytes);
    if constexpr (kIsFirst) {
      ZeroTile<kTile>();
    } else {
      LoadTile<kTile>(sums + kTile * kTileFloats, kTileRowBytes);
    }
  }

  void StoreSums() const {
    StoreTile<0>(pending_.sums, kTileRowBytes);
    StoreTile<1>(pending_.sums + kTileFloats, kTileRowBytes);
    StoreTile<2>(pending_.sums + 2 * kTileFloats, kTileRowBytes);
    StoreTile<3>(pending_.sums + 3 * kTileFloats, kTileRowBytes);
  }

  void Deliver() {
    if (pending_.finished) delivery_.Begin(pending_.sums, pending_.place);
  }

  const BlockGemm& product_;
  const int64_t steps_;
  const int64_t groups_;
  Delivery delivery_;
  bool is_first_pass_ = true;
  alignas(64) float sums_[kMostAmxColumns / kGroupColumns * kGroupFloats];
  // Initially zeros, whose destination the first sums overwrite.
  Pending pending_ = {sums_, false, {}};
};

void Multiply(const BlockGemm& product) {
  if (product.element == GemmElement::kBFloat16Both) {
    Multiplier<Bf16Tiles>(product).Run();
  } else {
    Multiplier<Int8Tiles>(product).Run();
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

bool FillsAmxTiles(GemmElement element, int64_t in) {
  return in * ElementBytes(element) % kStepBytes == 0;
}

int64_t AmxWeightBytes(GemmElement element, int64_t in, int64_t width) {
  return Steps(element, in) * Groups(width) * 2 * kTileBytes;
}

void PackAmxWeight(GemmElement element, const WeightBlock& rows, char* packed) {
  // An element of a tile: the elements of the depth that fit into four bytes.
  constexpr int64_t kQuad = 4;
  const int64_t steps = Steps(element, rows.in), groups = Groups(rows.width);
  std::memset(packed, 0, static_cast<size_t>(AmxWeightBytes(element, rows.in, rows.width)));
  for (int64_t column = 0; column < rows.width; ++column) {
    const char* row = rows.data + column * rows.row_bytes;
    const int64_t group = column / kGroupColumns, place = column % kGroupColumns;
    for (int64_t step = 0; step < steps; ++step, row += kStepBytes) {
      const int64_t stretch = step / kStretchSteps * kStretchSteps;
      const int64_t length = std::min(kStretchSteps, steps - stretch);
      char* tile = packed + 2 * kTileBytes * (stretch * groups + group * length + step - stretch) +
                   place / 16 * kTileBytes + place % 16 * kQuad;
      for (int64_t i = 0; i < kStepBytes; i += kQuad, tile += kStepBytes) {
        std::memcpy(tile, row + i, kQuad);
      }
    }
  }
}

void RunAmxGemm([[maybe_unused]] const BlockGemm& product) {
  RequireAmxUnits();
  assert(product.element == GemmElement::kInt8 || product.element == GemmElement::kBFloat16Both);
  assert(FillsAmxTiles(product.element, product.in));
  assert(product.width <= kMostAmxColumns && product.rows % 16 == 0);
#if (HWY_TARGETS & HWY_AVX3) != 0
  if (product.rows > 0) N_AVX3::Multiply(product);
#endif
}

}  // namespace attendant
#endif  // HWY_ONCE
