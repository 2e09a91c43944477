// Small exact cases with answers computed in float64 elsewhere. They need no files, and tests send
// them through the engine and through gRPC.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {

// Returns `count` values that are exact in float32, float16 and bfloat16: element i is (((37 i +
// 101 seed) mod 257) - 128) / 128.
std::vector<float> Generate(int64_t count, int64_t seed);

// One call and its answer, for a model of one layer.
struct TestVector {
  std::string name;
  ModelDescription description;
  MemoryWeights::Tensors weights;    // by canonical name
  std::optional<AttendStage> stage;  // the stage of Attend; none: Encode

  int64_t batch = 1;                    // B
  int64_t length = 0;                   // S
  std::vector<float> hidden_states;     // [B, S, E]
  std::vector<int32_t> attention_mask;  // [B, S], 1 keeps; or empty: keep all
  std::vector<float> attention_bias;    // [S, S], minus infinity forbids; or empty: none

  std::vector<std::vector<double>> first_rows;  // the first rows of the answer
  // Sums over the answer [B, S, width], whose padded rows are zeros.
  std::optional<double> sum;
  std::optional<double> sum_of_squares;
};

// Prints its name, which becomes part of test names.
inline void PrintTo(const TestVector& vector, std::ostream* out) { *out << vector.name; }

// The largest error of float32 on these cases.
inline constexpr double kTestVectorTolerance = 2e-6;

std::vector<TestVector> AllTestVectors();

}  // namespace attendant::test_support
