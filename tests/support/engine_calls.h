// Calls of the engine by sequences, as tests think of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "tests/support/compute_modes.h"

namespace attendant::testing {

using Sequence = std::vector<float>;  // [length, E]

// Loads or fails the test with an exception.
std::shared_ptr<const Encoder> LoadEncoder(const ModelDescription& description,
                                           WeightSource& weights, const ComputeMode& mode = {});

// A post-norm model of `layers` layers with GELU and biases; `heads` heads of `head_width`.
ModelDescription SmallModel(int64_t layers, int64_t heads, int64_t head_width);

// Sequences of seeded values, of these lengths.
std::vector<Sequence> RandomSequences(absl::Span<const int64_t> lengths, int64_t width,
                                      uint32_t seed);

// [0, length 0, length 0 + length 1, …].
std::vector<int32_t> CumulativeLengths(const std::vector<Sequence>& sequences, int64_t width);

// Copies the sequences into input(), back to back.
void FillInput(const std::vector<Sequence>& sequences, EncoderRun& run);

// Encodes a span of layers and cuts the result into its sequences. Throws on an error.
std::vector<Sequence> Encode(EncoderRun& run, const std::vector<Sequence>& sequences,
                             int64_t first_layer, int64_t layers);

// All layers.
std::vector<Sequence> Encode(EncoderRun& run, const Encoder& encoder,
                             const std::vector<Sequence>& sequences);

// The same bits, NaN included.
bool BitEqual(const Sequence& a, const Sequence& b);

}  // namespace attendant::testing
