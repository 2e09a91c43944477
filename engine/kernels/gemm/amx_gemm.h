// The AMX GEMM: matrix products on AMX tiles, on one thread. It calls RequireAmxUnits (isa.h), so
// it requires a CPU with AMX.
//
// It follows Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): 32
// rows of x by a stretch of the depth stay in the L1 cache while the weights stream past. Every
// element of y is summed over the depth in the same order, whatever its position and the number of
// rows: float32 sums are stored and reloaded between stretches, which is exact. So a row has the
// same bits in any batch.
#pragma once

#include <cstdint>

namespace attendant {

enum class AmxElement : uint8_t { kBf16, kInt8 };  // sums of float32, of int32

// Whether `in` columns of x fill whole tiles. Only then does the AMX GEMM support them.
bool FillsAmxTiles(AmxElement element, int64_t in);

// Returns the bytes of a packed weight [width, in].
int64_t AmxWeightBytes(AmxElement element, int64_t in, int64_t width);

// A weight [width, in].
struct AmxWeightRows {
  const char* data;
  int64_t row_bytes;  // from the start of one row to the next
  int64_t in;
  int64_t width;
};

// Packs a weight into `packed`, which has AmxWeightBytes bytes, aligned to 64.
void PackAmxWeight(AmxElement element, const AmxWeightRows& rows, char* packed);

// y[rows, width] = x[rows, in] W + bias.
struct AmxGemm {
  AmxElement element;
  int64_t in;     // must pass FillsAmxTiles
  int64_t width;  // at most kMostAmxColumns
  int64_t rows;   // a multiple of 16
  const char* x;
  int64_t x_row_bytes;  // from the start of one row of x to the next
  const char* weight;   // packed by PackAmxWeight
  const float* bias;    // [width], or null; must be null for kInt8
  bool add_to_y;        // whether to add to y instead of overwriting it; must be false for kInt8
  float* y;             // int32 for kInt8
  int64_t y_stride;     // elements
};
inline constexpr int64_t kMostAmxColumns = 192;

void RunAmxGemm(const AmxGemm& product);

}  // namespace attendant
