// ComputeMode: the number formats and the implementation of a model's matrix products.
#pragma once

#include <compare>
#include <cstdint>

#include "engine/base/names.h"

namespace attendant {

// The number format of the linear layers, in descending order of accuracy. Everything else is
// float32, except as AttendsInBf16 says.
//   kF32     float32
//   kBf16x3  weights and inputs each the sum of two bfloat16, x = hi + lo: y is the sum of
//            x_lo w_hi, x_hi w_lo and x_hi w_hi in float32. About as exact as float32.
//   kBf16    weights and inputs rounded to bfloat16, sums in float32
//   kInt8    weights quantised per output channel, inputs per token, both symmetric; sums exact
enum class ComputeType : uint8_t { kF32, kBf16x3, kBf16, kInt8 };

inline constexpr ComputeType kComputeTypes[] = {ComputeType::kF32, ComputeType::kBf16x3,
                                                ComputeType::kBf16, ComputeType::kInt8};

// Whether attention takes bfloat16 operands. On a CPU without units for them it takes float32 all
// the same; see AttentionShape::mode (engine/kernels/attention/attention.h).
constexpr bool AttendsInBf16(ComputeType type) {
  return type == ComputeType::kBf16 || type == ComputeType::kInt8;
}

inline constexpr Named<ComputeType> kComputeTypeNames[] = {{"f32", ComputeType::kF32},
                                                           {"bf16x3", ComputeType::kBf16x3},
                                                           {"bf16", ComputeType::kBf16},
                                                           {"int8", ComputeType::kInt8}};

// Returns "f32", "bf16x3", "bf16" or "int8".
constexpr const char* Name(ComputeType type) { return NameIn(kComputeTypeNames, type); }

// The implementation of matrix products: oneDNN, the AMX GEMM (engine/kernels/gemm/amx_gemm.h) or
// the vector GEMM (vector_gemm.h there).
enum class Gemm : uint8_t {
  kAuto,    // chosen by the CPU; see gemm_choice.h
  kOneDnn,  // not with weights of 16 bits
  kTiles,   // the AMX GEMM; neither for kF32 nor with emulation
  kVector,  // the vector GEMM; for kF32, for kInt8 and with emulation
};

inline constexpr Named<Gemm> kGemmNames[] = {{"auto", Gemm::kAuto},
                                             {"onednn", Gemm::kOneDnn},
                                             {"tiles", Gemm::kTiles},
                                             {"vector", Gemm::kVector}};

// Returns "auto", "onednn", "tiles" or "vector".
constexpr const char* Name(Gemm gemm) { return NameIn(kGemmNames, gemm); }

// The type in which the weights of linear layers are kept for kF32. The arithmetic is float32 with
// each of them.
enum class WeightType : uint8_t {
  kAuto,  // kBf16 or kF16 if all elements of a weight fit exactly, otherwise kF32: the results
          // have the bits of kF32
  kF32,
  kBf16,  // elements that do not fit are rounded to nearest even
  kF16,   // likewise
};

inline constexpr Named<WeightType> kWeightTypeNames[] = {{"auto", WeightType::kAuto},
                                                         {"f32", WeightType::kF32},
                                                         {"bf16", WeightType::kBf16},
                                                         {"f16", WeightType::kF16}};

// Returns "auto", "f32", "bf16" or "f16".
constexpr const char* Name(WeightType type) { return NameIn(kWeightTypeNames, type); }

// The way in which the linear layers of a model are computed.
struct ComputeMode {
  ComputeType type = ComputeType::kF32;
  // If true, operands are rounded as `type` says but multiplied in float32, which gives the type's
  // accuracy on any CPU. It is no faster than kF32 and takes no less memory: kBf16x3 takes three
  // times the time and twice the memory.
  bool emulate = false;
  Gemm gemm = Gemm::kAuto;
  WeightType weights = WeightType::kAuto;  // kAuto unless `type` is kF32

  friend auto operator<=>(const ComputeMode&, const ComputeMode&) = default;
};

// The number of parts that an element of an operand is the sum of: 2 for kBf16x3, else 1.
constexpr int64_t OperandParts(const ComputeMode& mode) {
  return mode.type == ComputeType::kBf16x3 ? 2 : 1;
}

// Bytes of an element of an operand in all its parts: 2 for each part of bfloat16, 1 for int8, and
// 4 for each part if emulated or kF32.
constexpr int64_t OperandWidth(const ComputeMode& mode) {
  if (mode.type == ComputeType::kF32) return sizeof(float);
  if (mode.emulate) return OperandParts(mode) * static_cast<int64_t>(sizeof(float));
  if (mode.type == ComputeType::kInt8) return sizeof(int8_t);
  return OperandParts(mode) * static_cast<int64_t>(sizeof(uint16_t));
}

}  // namespace attendant
