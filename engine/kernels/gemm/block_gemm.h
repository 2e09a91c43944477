// The engine's own matrix products, on one thread: the AMX GEMM and the vector GEMM.
//
// The AMX GEMM multiplies bfloat16 by bfloat16 or int8 by int8 on AMX tiles. It calls
// RequireAmxUnits (isa.h), so it requires a CPU with AMX. It follows Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication" (2008): 32 rows of x by a stretch of the
// depth stay in the L1 cache while the weights stream past. Every element of y is summed over the
// depth in the same order, whatever its position and the number of rows: float32 sums are stored
// and reloaded between stretches, which is exact.
//
// The vector GEMM is for every CPU that the engine supports. It multiplies float32 by float32,
// bfloat16 or float16 weights, which it widens as it reads them, and int8 by int8; on arm64 CPUs
// with bf16 units also bfloat16 by bfloat16. For each stretch of `sum_block` elements of the depth,
// it sums by fused multiply-adds in order, starting at zero; then it adds the sums of the stretches
// in order, and then the bias. oneDNN's float32 products are sums of this form, so for some
// `sum_block` the vector GEMM gives the same bits (kernel_check.h). Sums of bfloat16 by bfloat16
// have the same form, except that the units first add pairs of products and round to odd.
//
// In both, a row has the same bits in any batch. Int8 sums are exact.
#pragma once

#include <cstdint>

namespace attendant {

// The type of a weight, and of x: int8 for kInt8, bfloat16 for kBFloat16Both, otherwise float32.
// The AMX GEMM supports only kInt8 and kBFloat16Both.
enum class GemmElement : uint8_t { kFloat32, kBFloat16, kFloat16, kInt8, kBFloat16Both };

// Returns the name of the vector GEMM's kernel for these products on this CPU: its instruction set,
// or, on arm64, the instruction for int8 and bfloat16: "avx2", "avx512", "avx_vnni", "neon",
// "sdot", "smmla" or "bfmmla".
const char* VectorKernelName(GemmElement element);

// A weight [width, in].
struct WeightBlock {
  const char* data;
  int64_t row_bytes;  // from the start of one row to the next
  int64_t in;
  int64_t width;
};

// Large enough for full speed, and small enough for sums as accurate as oneDNN's.
inline constexpr int64_t kVectorSumBlock = 384;

// y[rows, width] = x[rows, in] W + bias. Elements of int8 x and weights are in [-127, 127].
struct BlockGemm {
  GemmElement element;
  int64_t in;     // for AMX, must pass FillsAmxTiles
  int64_t width;  // for AMX, at most kMostAmxColumns
  int64_t rows;   // for AMX, a multiple of 16
  const char* x;
  int64_t x_row_bytes;  // from the start of one row of x to the next
  const char* weight;   // packed by the function of the same GEMM
  const float* bias;    // [width], or null; must be null for kInt8
  bool add_to_y;        // whether to add to y instead of overwriting it; must be false for kInt8
  int64_t sum_block = kVectorSumBlock;  // for vectors; ignored for kInt8
  float* y;                             // int32 for kInt8
  int64_t y_stride;                     // elements
};

inline constexpr int64_t kMostAmxColumns = 192;

// Whether `in` columns of x fill whole tiles. Only then does the AMX GEMM support them.
bool FillsAmxTiles(GemmElement element, int64_t in);

// Return the bytes of a packed weight [width, in].
int64_t AmxWeightBytes(GemmElement element, int64_t in, int64_t width);
int64_t VectorWeightBytes(GemmElement element, int64_t in, int64_t width);

// Pack a weight into `packed`, which has so many bytes, aligned to 64. `rows` are int8 for kInt8,
// bfloat16 for kBFloat16Both, otherwise float32, which packing rounds to nearest even.
void PackAmxWeight(GemmElement element, const WeightBlock& rows, char* packed);
void PackVectorWeight(GemmElement element, const WeightBlock& rows, char* packed);

// Each aborts the process on CPUs without its units: the AMX GEMM, and kBFloat16Both for the vector
// GEMM. If sum_block is less than `in`, it is even for kBFloat16, and a multiple of 4 for
// kBFloat16Both.
void RunAmxGemm(const BlockGemm& product);
void RunVectorGemm(const BlockGemm& product);

}  // namespace attendant
