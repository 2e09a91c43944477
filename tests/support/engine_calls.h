// Calls of the engine with one vector per sequence, as tests like to have them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "tests/support/compute_modes.h"

namespace attendant::test_support {

using Sequence = std::vector<float>;  // [length, E]

// Loads the model. Throws on an error, which fails the test.
std::shared_ptr<const Encoder> LoadEncoder(const ModelDescription& description,
                                           WeightSource& weights, const ComputeMode& mode = {});

// Returns a post-norm model of `layers` layers with GELU and biases, and `heads` heads of width
// `head_width`.
ModelDescription SmallModel(int64_t layers, int64_t heads, int64_t head_width);

// Returns sequences of these lengths with seeded random values.
std::vector<Sequence> RandomSequences(absl::Span<const int64_t> lengths, int64_t width,
                                      uint32_t seed);

// Returns [0, length 0, length 0 + length 1, …].
std::vector<int32_t> CumulativeLengths(const std::vector<Sequence>& sequences, int64_t width);

// Copies the sequences into input(), back to back.
void FillInput(const std::vector<Sequence>& sequences, EncoderRun& run);

// Encodes a span of layers and cuts the result into its sequences. Throws on an error.
std::vector<Sequence> Encode(EncoderRun& run, const std::vector<Sequence>& sequences,
                             int64_t first_layer, int64_t layers);

// As above, for all layers.
std::vector<Sequence> Encode(EncoderRun& run, const Encoder& encoder,
                             const std::vector<Sequence>& sequences);

// Returns what a head of linear layers makes of these vectors, each of them a sequence of one row,
// one after the other.
std::vector<Sequence> ApplyHead(EncoderRun& run, HeadKind head, const std::vector<Sequence>& rows);

// Expects the model, and runs of it for several numbers of tokens, to take no more memory than is
// predicted.
void ExpectPredictedMemory(const ModelDescription& model, WeightSource& weights);

// Returns whether all bits are equal, those of NaN included.
bool BitEqual(const Sequence& a, const Sequence& b);

}  // namespace attendant::test_support
