// What the matrix products of a model compute with.
#pragma once

#include <compare>
#include <cstdint>

namespace attendant {

// Of the linear layers. Attention takes bfloat16 operands in kBf16, and in kInt8 where the CPU has
// units for them (see AttentionShape); everything else is float32.
//   kF32   float32
//   kBf16  weights and inputs rounded to bfloat16, sums in float32
//   kInt8  weights quantised per output channel, inputs per token, both symmetric; sums exact
enum class ComputeType : uint8_t { kF32, kBf16, kInt8 };

// "f32", "bf16", "int8".
constexpr const char* Name(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return "f32";
    case ComputeType::kBf16:
      return "bf16";
    case ComputeType::kInt8:
      return "int8";
  }
  return "unknown";
}

// How a model is computed.
struct ComputeMode {
  ComputeType type = ComputeType::kF32;
  // The roundings of `type`, but the products in float32: the type's accuracy on any CPU, at the
  // speed and in the memory of kF32.
  bool emulate = false;

  friend auto operator<=>(const ComputeMode&, const ComputeMode&) = default;
};

}  // namespace attendant
