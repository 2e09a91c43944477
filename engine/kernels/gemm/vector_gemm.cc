#include "engine/kernels/gemm/block_gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/base/data_type.h"
#include "engine/base/rounding.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/step_layout.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/row_tiles.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm/vector_gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/gemm/int8_dots-inl.h"
#include "engine/kernels/neon_matrices-inl.h"
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

// The packed weight is split into stripes of kStripeVectors (step_layout.h) vectors of columns.
// The last one may have fewer and is padded with zeros. A stripe has the columns of one row of W^T
// side by side, row after row. For bfloat16, kBf16WeightStep rows are stored together, column after
// column. The sums of a tile of kTileRows rows and a stripe are in registers.
constexpr int64_t kVectorColumns = static_cast<int64_t>(kLanes);
constexpr int64_t kStripeColumns = kStripeVectors * kVectorColumns;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON  // with 32 registers
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

int64_t FloatColumns(int64_t width) { return RoundUp(width, kVectorColumns); }

// How the elements of a packed weight are multiplied. A step is the part of the depth that lies
// together for each column.
template <class T>
struct Operands {
  using X = float;
  using Weight = T;
  static constexpr int64_t kStep = std::is_same_v<T, hwy::bfloat16_t> ? kBf16WeightStep : 1;
  static constexpr bool kExact = false;
};

// Return element `k` of a step of a vector of columns.
HWY_INLINE Floats LoadWeights(const float* step, int64_t /*k*/) {
  return hn::LoadU(FloatTag(), step);
}

#if HWY_TARGET == HWY_NEON
HWY_INLINE Floats LoadWeights(const hwy::bfloat16_t* step, int64_t /*k*/) {
  const uint16_t* const halves = reinterpret_cast<const uint16_t*>(step);
  const uint16x8_t bits = vcombine_u16(vld1_u16(halves), vdup_n_u16(0));
  return Floats(vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), bits)));
}
#else
// Clears the lower halves. With AVX2 the mask stays in memory, because the sums of a tile need the
// registers.
HWY_INLINE Bits UpperHalves(Bits pairs) {
#if HWY_TARGET == HWY_AVX2
  constexpr uint64_t kUpper = 0xFFFF0000FFFF0000;
  HWY_ALIGN static constexpr uint64_t kMask[] = {kUpper, kUpper, kUpper, kUpper};
  asm("vpand %[mask], %[pairs], %[pairs]" : [pairs] "+x"(pairs.raw) : [mask] "m"(kMask));
  return pairs;
#else
  return hn::And(pairs, hn::Set(BitsTag(), 0xFFFF0000));
#endif
}

HWY_INLINE Floats LoadWeights(const hwy::bfloat16_t* step, int64_t k) {
  const Bits pairs = hn::LoadU(BitsTag(), reinterpret_cast<const uint32_t*>(step));
  return hn::BitCast(FloatTag(), k == 0 ? hn::ShiftLeft<16>(pairs) : UpperHalves(pairs));
}
#endif

HWY_INLINE Floats LoadWeights(const hwy::float16_t* step, int64_t /*k*/) {
  return hn::PromoteTo(FloatTag(), hn::LoadU(hn::Rebind<hwy::float16_t, FloatTag>(), step));
}

#if HWY_TARGET == HWY_NEON
// In this layout, stripes have steps of several elements (StepLayout).
static_assert(kMatrixLayout.step_bytes == kMatrixDepth &&
              kMatrixLayout.vector_columns == kVectorColumns &&
              kMatrixLayout.stripe_columns == kStripeColumns);

template <>
struct Operands<Int8Matrix> {
  using X = int8_t;
  using Weight = int8_t;
  static constexpr int64_t kStep = kMatrixDepth;
  static constexpr bool kExact = true;
};

template <>
struct Operands<Bf16Matrix> {
  using X = uint16_t;
  using Weight = uint16_t;
  static constexpr int64_t kStep = kMatrixDepth / 2;
  static constexpr bool kExact = false;
};
#endif

// Returns the bytes of a packed weight with `depth` elements and one column.
template <class T>
constexpr int64_t ColumnBytes(int64_t depth) {
  using Weight = typename Operands<T>::Weight;
  return RoundUp(depth, Operands<T>::kStep) * static_cast<int64_t>(sizeof(Weight));
}

// A stretch of the depth of a stripe, and the destination of its sums.
struct Stretch {
  const char* x;
  int64_t x_row_bytes;
  int64_t depth;
  bool add_to_y;
  const float* bias;  // may be null
  float* y;
  int64_t y_stride;
  int64_t last_columns;  // of the last vector
  // The bytes of the next stretch's weights that a tile of rows prefetches per step of the depth,
  // so that all tiles together prefetch all of them. Without this, products with few rows
  // would wait for memory as long as they compute. The next weight usually follows the end of this
  // one in memory.
  int64_t bytes_ahead;
};

// Adds the products of element kElement of a step to the sums. `x` is this element of the first
// row.
template <int kElement, class T, int kRows, int kVectors>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT x, int64_t x_stride,
                            const T* HWY_RESTRICT step, Floats (&sums)[kRows][kVectors]) {
  Floats columns[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    columns[v] = LoadWeights(step + v * kVectorColumns * Operands<T>::kStep, kElement);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Floats factor = hn::Set(FloatTag(), x[r * x_stride]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
      KeepInRegister(sums[r][v]);
    }
  }
}

// Computes the sums of kRows rows from `row` on.
template <class T, int kRows, int kVectors>
requires(std::is_same_v<typename Operands<T>::X, float>) HWY_INLINE
    void SumRows(const Stretch& stretch, const char* packed, const char* ahead, int64_t row,
                 Floats (&sums)[kRows][kVectors]) {
  constexpr int64_t kStep = Operands<T>::kStep;
  const int64_t x_stride = stretch.x_row_bytes / static_cast<int64_t>(sizeof(float));
  const int64_t depth = stretch.depth;
  const float* HWY_RESTRICT x = reinterpret_cast<const float*>(stretch.x) + row * x_stride;
  const T* HWY_RESTRICT weights = reinterpret_cast<const T*>(packed);
  ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR { sums[r][v] = hn::Zero(FloatTag()); });
  const int64_t bytes_ahead = stretch.bytes_ahead;
  int64_t k = 0;
  for (; k + kStep <= depth; k += kStep, weights += kVectors * kVectorColumns * kStep) {
    __builtin_prefetch(ahead);
    ahead += bytes_ahead;
    AddProducts<0>(x + k, x_stride, weights, sums);
    if constexpr (kStep == 2) AddProducts<1>(x + k + 1, x_stride, weights, sums);
  }
  if constexpr (kStep == 2) {  // An odd depth ends with half a pair.
    if (k < depth) AddProducts<0>(x + k, x_stride, weights, sums);
  }
}

#if HWY_TARGET == HWY_NEON
template <class T, int kRows, int kVectors>
requires(!std::is_same_v<typename Operands<T>::X, float>) HWY_INLINE
    void SumRows(const Stretch& stretch, const char* weights, const char* ahead, int64_t row,
                 Floats (&sums)[kRows][kVectors]) {
  const int64_t depth = stretch.depth * static_cast<int64_t>(sizeof(typename Operands<T>::Weight));
  const MatrixRows x = {stretch.x + row * stretch.x_row_bytes, stretch.x_row_bytes, depth};
  SumMatrices<T>(x, weights, {ahead, stretch.bytes_ahead}, sums);
}
#endif

// Computes the products of kRows rows from `row` on. Not inlined, so that the compiler keeps the
// sums in registers for every caller.
template <class T, int kRows, int kVectors>
HWY_NOINLINE void MultiplyRows(const Stretch& stretch, const char* HWY_RESTRICT weights,
                               const char* ahead, int64_t row) {
  Floats sums[kRows][kVectors];
  SumRows<T>(stretch, weights, ahead, row, sums);
  float* const y = stretch.y + row * stretch.y_stride;
  const auto place = [&](int r, int v) { return y + r * stretch.y_stride + v * kVectorColumns; };
  const auto width = [&](int v) {
    return v + 1 == kVectors ? stretch.last_columns : kVectorColumns;
  };
  if (stretch.add_to_y) {
    ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR {
      sums[r][v] = hn::Add(LoadUpTo(place(r, v), width(v)), sums[r][v]);
    });
  }
  if (stretch.bias != nullptr) {
    ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR {
      const Floats bias = LoadUpTo(stretch.bias + v * kVectorColumns, width(v));
      sums[r][v] = hn::Add(sums[r][v], bias);
    });
  }
  ForTile<kRows, kVectors>([&](int r, int v)
                               HWY_ATTR { StoreUpTo(sums[r][v], place(r, v), width(v)); });
}

// `ahead` is the start of the next stretch's weights.
template <int kVectors, class T>
HWY_INLINE void MultiplyAllRows(const Stretch& stretch, const char* weights, const char* ahead,
                                int64_t rows) {
  int64_t row = 0;
  const int64_t tile_ahead = CeilDivide(stretch.depth, Operands<T>::kStep) * stretch.bytes_ahead;
  for (; row + kTileRows <= rows; row += kTileRows, ahead += tile_ahead) {
    MultiplyRows<T, kTileRows, kVectors>(stretch, weights, ahead, row);
  }
  if constexpr (kTileRows > kSmallRowTile) {
    for (; row + kSmallRowTile <= rows; row += kSmallRowTile, ahead += tile_ahead) {
      MultiplyRows<T, kSmallRowTile, kVectors>(stretch, weights, ahead, row);
    }
  }
  for (; row < rows; ++row) MultiplyRows<T, 1, kVectors>(stretch, weights, ahead, row);
}

// Computes the products of a stripe of `columns` columns from `first` on.
template <int kVectors, class T>
HWY_INLINE void MultiplyStripe(const BlockGemm& product, int64_t first, int64_t columns) {
  constexpr int64_t kElementBytes = static_cast<int64_t>(sizeof(typename Operands<T>::X));
  const char* weights = product.weight + first * ColumnBytes<T>(product.in);
  const int64_t sum_block =
      Operands<T>::kExact ? std::max(int64_t{1}, product.in) : product.sum_block;
  for (int64_t k = 0; k == 0 || k < product.in; k += sum_block) {
    const int64_t depth = std::min(sum_block, product.in - k);
    const bool is_last = k + depth == product.in;
    const Stretch stretch = {
        .x = product.x + k * kElementBytes,
        .x_row_bytes = product.x_row_bytes,
        .depth = depth,
        .add_to_y = product.add_to_y || k > 0,
        .bias = is_last && product.bias != nullptr ? product.bias + first : nullptr,
        .y = product.y + first,
        .y_stride = product.y_stride,
        .last_columns = (columns - 1) % kVectorColumns + 1,
        .bytes_ahead = kVectors * kVectorColumns * ColumnBytes<T>(1) /
                       std::max(int64_t{1}, CeilDivide(product.rows, kTileRows))};
    const char* const next = weights + ColumnBytes<T>(depth) * kVectors * kVectorColumns;
    MultiplyAllRows<kVectors, T>(stretch, weights, next, product.rows);
    weights = next;
  }
}

template <class T>
HWY_INLINE void Multiply(const BlockGemm& product) {
  for (int64_t first = 0; first < product.width; first += kStripeColumns) {
    const int64_t columns = std::min(kStripeColumns, product.width - first);
    switch (CeilDivide(columns, kVectorColumns)) {
      case 1:
        MultiplyStripe<1, T>(product, first, columns);
        break;
      case 2:
        MultiplyStripe<2, T>(product, first, columns);
        break;
      default:
        MultiplyStripe<kStripeVectors, T>(product, first, columns);
        break;
    }
  }
}

void MultiplyInt8(const BlockGemm& product) {
#if HWY_TARGET == HWY_NEON
  if (UsesInt8Matrices()) return Multiply<Int8Matrix>(product);
#endif
  MultiplyInt8ByDots(product);
}

void MultiplyBFloat16([[maybe_unused]] const BlockGemm& product) {
#if HWY_TARGET == HWY_NEON
  RequireBf16Units();
  Multiply<Bf16Matrix>(product);
#else
  RefuseKernel("neon_bf16");
#endif
}

void MultiplyOnVectors(const BlockGemm& product) {
  switch (product.element) {
    case GemmElement::kFloat32:
      return Multiply<float>(product);
    case GemmElement::kBFloat16:
      return Multiply<hwy::bfloat16_t>(product);
    case GemmElement::kFloat16:
      return Multiply<hwy::float16_t>(product);
    case GemmElement::kInt8:
      return MultiplyInt8(product);
    case GemmElement::kBFloat16Both:
      return MultiplyBFloat16(product);
  }
}

// Returns the name of the kernel that MultiplyOnVectors uses.
const char* NameOfKernel(GemmElement element) {
  if (element == GemmElement::kInt8) return NameOfInt8Kernel();
#if HWY_TARGET == HWY_NEON
  return element == GemmElement::kBFloat16Both ? "bfmmla" : "neon";
#else
  return HWY_TARGET <= HWY_AVX3 ? "avx512" : "avx2";
#endif
}

int64_t ColumnsOfPackedWeight(int64_t width) { return FloatColumns(width); }

// Writes the transposed columns to `packed`, `step` elements of the depth at a time.
void PackStripes(const WeightBlock& rows, DataType type, int64_t step, char* packed) {
  for (int64_t first = 0; first < rows.width; first += kStripeColumns) {
    const int64_t columns = std::min(kStripeColumns, rows.width - first);
    const int64_t elements = FloatColumns(columns) * step;
    for (int64_t k = 0; k < rows.in; k += step, packed += elements * ByteWidth(type)) {
      float line[kStripeColumns * kBf16WeightStep] = {};
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(&line[c * step], rows.data + (first + c) * rows.row_bytes + k * sizeof(float),
                    std::min(step, rows.in - k) * sizeof(float));
      }
      FromFloat(line, elements, type, packed);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(MultiplyOnVectors);
HWY_EXPORT(NameOfKernel);
HWY_EXPORT(ColumnsOfPackedWeight);
HWY_EXPORT(PackStripes);

namespace {

DataType TypeOf(GemmElement element) {
  switch (element) {
    case GemmElement::kBFloat16:
      return DataType::kBFloat16;
    case GemmElement::kFloat16:
      return DataType::kFloat16;
    default:
      return DataType::kFloat32;
  }
}

int64_t StepOf(GemmElement element) {
  return element == GemmElement::kBFloat16 ? kBf16WeightStep : 1;
}

const StepLayout& LayoutOfInt8() {
  if (UsesInt8Matrices()) return kMatrixLayout;
  return UsesInt8Dots() ? kQuadDotsLayout : kPairDotsLayout;
}

}  // namespace

const char* VectorKernelName(GemmElement element) {
  return HWY_DYNAMIC_DISPATCH(NameOfKernel)(element);
}

int64_t VectorWeightBytes(GemmElement element, int64_t in, int64_t width) {
  if (element == GemmElement::kBFloat16Both) return BytesInSteps(kMatrixLayout, 2 * in, width);
  if (element == GemmElement::kInt8) return BytesInSteps(LayoutOfInt8(), in, width);
  return HWY_DYNAMIC_DISPATCH(ColumnsOfPackedWeight)(width) * RoundUp(in, StepOf(element)) *
         ByteWidth(TypeOf(element));
}

void PackVectorWeight(GemmElement element, const WeightBlock& rows, char* packed) {
  if (element == GemmElement::kBFloat16Both) {
    return PackInSteps(kMatrixLayout, rows, 2 * rows.in, packed);
  }
  if (element == GemmElement::kInt8) return PackInSteps(LayoutOfInt8(), rows, rows.in, packed);
  HWY_DYNAMIC_DISPATCH(PackStripes)(rows, TypeOf(element), StepOf(element), packed);
}

void RunVectorGemm(const BlockGemm& product) { HWY_DYNAMIC_DISPATCH(MultiplyOnVectors)(product); }

}  // namespace attendant
#endif  // HWY_ONCE
