// ComputeMode: the number formats and the implementation of a model's matrix products.
#pragma once

#include <compare>
#include <cstdint>

#include "engine/base/names.h"

namespace attendant {

// The number format of linear layers, in descending order of accuracy. All other computations are
// float32, except attention; see AttendsInBf16.
//   kF32     float32
//   kBf16x3  weights and inputs are sums of two bfloat16, x = hi + lo, and y is the sum of
//            x_lo w_hi, x_hi w_lo and x_hi w_hi in float32; about as accurate as float32
//   kBf16    weights and inputs are rounded to bfloat16; sums are float32
//   kInt8    weights are quantised per output channel and inputs per token, symmetrically; sums are
//            exact
enum class ComputeType : uint8_t { kF32, kBf16x3, kBf16, kInt8 };

inline constexpr ComputeType kComputeTypes[] = {ComputeType::kF32, ComputeType::kBf16x3,
                                                ComputeType::kBf16, ComputeType::kInt8};

// Whether the products of attention have bfloat16 inputs. On a CPU without bf16 units they are
// float32 regardless; see AttentionShape::mode (engine/kernels/attention/attention.h).
constexpr bool AttendsInBf16(ComputeType type) {
  return type == ComputeType::kBf16 || type == ComputeType::kInt8;
}

inline constexpr Named<ComputeType> kComputeTypeNames[] = {{"f32", ComputeType::kF32},
                                                           {"bf16x3", ComputeType::kBf16x3},
                                                           {"bf16", ComputeType::kBf16},
                                                           {"int8", ComputeType::kInt8}};

// Returns "f32", "bf16x3", "bf16" or "int8".
constexpr const char* Name(ComputeType type) { return NameIn(kComputeTypeNames, type); }

// The implementation of matrix products: oneDNN, the AMX GEMM or the vector GEMM
// (engine/kernels/gemm/block_gemm.h).
enum class Gemm : uint8_t {
  kAuto,    // depends on the CPU; see gemm_choice.h
  kOneDnn,  // does not support 16-bit weights
  kTiles,   // the AMX GEMM; supports neither kF32 nor emulation
  kVector,  // the vector GEMM; supports kF32, kInt8, emulation, and kBf16 on some CPUs
};

inline constexpr Named<Gemm> kGemmNames[] = {{"auto", Gemm::kAuto},
                                             {"onednn", Gemm::kOneDnn},
                                             {"tiles", Gemm::kTiles},
                                             {"vector", Gemm::kVector}};

// Returns "auto", "onednn", "tiles" or "vector".
constexpr const char* Name(Gemm gemm) { return NameIn(kGemmNames, gemm); }

// The type of linear weights in memory for kF32. The arithmetic is float32 for all of them.
enum class WeightType : uint8_t {
  kAuto,  // kBf16 or kF16 if all elements of a weight are exact, otherwise kF32; results have the
          // bits of kF32
  kF32,
  kBf16,  // elements that are not exact are rounded to nearest even
  kF16,   // likewise
};

inline constexpr Named<WeightType> kWeightTypeNames[] = {{"auto", WeightType::kAuto},
                                                         {"f32", WeightType::kF32},
                                                         {"bf16", WeightType::kBf16},
                                                         {"f16", WeightType::kF16}};

// Returns "auto", "f32", "bf16" or "f16".
constexpr const char* Name(WeightType type) { return NameIn(kWeightTypeNames, type); }

// The computation of a model's linear layers.
struct ComputeMode {
  ComputeType type = ComputeType::kF32;
  // Rounds the inputs of products as `type` does but multiplies in float32, which gives the
  // accuracy of the type on any CPU. This is no faster than kF32 and takes no less memory: kBf16x3
  // takes three times the time and twice the memory.
  bool emulate = false;
  Gemm gemm = Gemm::kAuto;
  WeightType weights = WeightType::kAuto;  // must be kAuto unless `type` is kF32

  friend auto operator<=>(const ComputeMode&, const ComputeMode&) = default;
};

// Returns the number of parts that add up to an element of a GEMM input: 2 for kBf16x3,
// otherwise 1.
constexpr int64_t InputParts(const ComputeMode& mode) {
  return mode.type == ComputeType::kBf16x3 ? 2 : 1;
}

// Returns the bytes of all parts of an element of a GEMM input: 4 per part for kF32 or with
// emulation, otherwise 1 for int8 and 2 per part for bfloat16.
constexpr int64_t InputElementBytes(const ComputeMode& mode) {
  if (mode.type == ComputeType::kF32) return sizeof(float);
  if (mode.emulate) return InputParts(mode) * static_cast<int64_t>(sizeof(float));
  if (mode.type == ComputeType::kInt8) return sizeof(int8_t);
  return InputParts(mode) * static_cast<int64_t>(sizeof(uint16_t));
}

}  // namespace attendant
