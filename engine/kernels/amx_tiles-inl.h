// AMX instructions on eight tiles of 16 rows of 64 bytes. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_AMX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_AMX_TILES_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_AMX_TILES_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_AMX_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileRowBytes = 64;

// Configures the AMX unit of the thread for eight such tiles, which start as zeros. The destructor
// restores the previous configuration, because oneDNN's kernels also use the unit.
class TileConfiguration {
 public:
  TileConfiguration() {
    asm volatile("sttilecfg %[before]" : [before] "=m"(before_));
    Palette palette = {};
    palette.palette = 1;
    std::fill_n(palette.row_bytes, 8, static_cast<uint16_t>(kTileRowBytes));
    std::fill_n(palette.rows, 8, static_cast<uint8_t>(kTileRows));
    asm volatile("ldtilecfg %[palette]" : : [palette] "m"(palette));
  }
  ~TileConfiguration() { asm volatile("ldtilecfg %[before]" : : [before] "m"(before_)); }
  TileConfiguration(const TileConfiguration&) = delete;
  TileConfiguration& operator=(const TileConfiguration&) = delete;

 private:
  // The layout that the instructions define.
  struct alignas(64) Palette {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  Palette before_;
};

// LoadTile and StoreTile load and store a tile whose rows are `row_bytes` apart.
template <int kTile>
HWY_INLINE void LoadTile(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%[from],%[bytes],1), %%tmm%c[tile]"
               :
               : [from] "r"(from), [bytes] "r"(row_bytes), [tile] "i"(kTile)
               : "memory");
}

template <int kTile>
HWY_INLINE void StoreTile(void* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c[tile], (%[to],%[bytes],1)"
               :
               : [to] "r"(to), [bytes] "r"(row_bytes), [tile] "i"(kTile)
               : "memory");
}

template <int kTile>
HWY_INLINE void ZeroTile() {
  asm volatile("tilezero %%tmm%c[tile]" : : [tile] "i"(kTile));
}

// Adds tile kA times tile kB to tile kSum. For each of its 16 columns, a row of tile kB has the
// next two bfloat16 elements of the depth, or the next four int8 elements.
struct Bf16Tiles {
  template <int kSum, int kA, int kB>
  static HWY_INLINE void MultiplyAdd() {
    asm volatile("tdpbf16ps %%tmm%c[b], %%tmm%c[a], %%tmm%c[sum]"
                 :
                 : [b] "i"(kB), [a] "i"(kA), [sum] "i"(kSum));
  }
};

struct Int8Tiles {
  template <int kSum, int kA, int kB>
  static HWY_INLINE void MultiplyAdd() {
    asm volatile("tdpbssd %%tmm%c[b], %%tmm%c[a], %%tmm%c[sum]"
                 :
                 : [b] "i"(kB), [a] "i"(kA), [sum] "i"(kSum));
  }
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
