// The AMX GEMM: matrix products on the tiles of AMX, on one thread. Only for CPUs with AMX:
// it calls RequireAmxUnits (isa.h).
//
// The structure is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008): 32 rows of x by a stretch of the depth stay in the first cache while the
// weights stream past them. An element of y is summed over the depth in one order, whatever its
// place and however many rows there are: float32 sums are stored and loaded again between
// stretches, which is exact. So a row has the same bits in any batch.
#pragma once

#include <cstdint>

namespace attendant {

enum class AmxElement : uint8_t { kBf16, kInt8 };  // sums of float32, of int32

// Whether `in` columns of x fill whole tiles, so that there is an AMX GEMM of them.
bool FillsAmxTiles(AmxElement element, int64_t in);

// Bytes of a packed weight [width, in].
int64_t AmxWeightBytes(AmxElement element, int64_t in, int64_t width);

// A weight's rows of `in` elements each.
struct AmxWeightRows {
  const char* data;
  int64_t row_bytes;  // from one to the next
  int64_t in;
  int64_t width;  // how many
};

// packed: AmxWeightBytes, aligned to 64.
void PackAmxWeight(AmxElement element, const AmxWeightRows& rows, char* packed);

// y[rows, width] = x[rows, in] W + bias.
struct AmxGemm {
  AmxElement element;
  int64_t in;     // FillsAmxTiles
  int64_t width;  // at most kMostAmxColumns
  int64_t rows;   // a multiple of 16
  const char* x;
  int64_t x_row_bytes;  // from one row of x to the next
  const char* weight;   // of PackAmxWeight
  const float* bias;    // [width], or null; of kBf16
  bool add_to_y;        // y += instead; of kBf16
  float* y;             // int32 for kInt8
  int64_t y_stride;     // elements
};
inline constexpr int64_t kMostAmxColumns = 192;

void RunAmxGemm(const AmxGemm& product);

}  // namespace attendant
