#include "tests/support/engine_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "tests/support/random_values.h"

namespace attendant::test_support {

std::shared_ptr<const Encoder> LoadEncoder(const ModelDescription& description,
                                           WeightSource& weights, const ComputeMode& mode) {
  absl::StatusOr<std::shared_ptr<const Encoder>> encoder = Encoder::Load(
      description, weights, [](int64_t, int64_t) {}, mode);
  if (!encoder.ok()) throw std::runtime_error(encoder.status().ToString());
  return *encoder;
}

ModelDescription SmallModel(int64_t layers, int64_t heads, int64_t head_width) {
  ModelDescription model;
  model.family = "test";
  model.layers = layers;
  model.layer.hidden_size = heads * head_width;
  model.layer.attention.heads = heads;
  model.layer.attention.key_width = head_width;
  model.layer.attention.value_width = head_width;
  model.layer.feed_forward.width = 2 * heads * head_width;
  model.layer.attention.score_scale =
      static_cast<float>(1 / std::sqrt(static_cast<double>(head_width)));
  model.layer.norms.epsilon = 1e-5f;
  return model;
}

std::vector<Sequence> RandomSequences(absl::Span<const int64_t> lengths, int64_t width,
                                      uint32_t seed) {
  std::vector<Sequence> sequences;
  for (int64_t length : lengths) sequences.push_back(RandomValues(length * width, seed++));
  return sequences;
}

std::vector<int32_t> CumulativeLengths(const std::vector<Sequence>& sequences, int64_t width) {
  std::vector<int32_t> bounds = {0};
  for (const Sequence& sequence : sequences) {
    bounds.push_back(bounds.back() + static_cast<int32_t>(sequence.size() / width));
  }
  return bounds;
}

void FillInput(const std::vector<Sequence>& sequences, EncoderRun& run) {
  float* row = run.input().data;
  for (const Sequence& sequence : sequences) {
    row = std::copy(sequence.begin(), sequence.end(), row);
  }
}

std::vector<Sequence> Encode(EncoderRun& run, const std::vector<Sequence>& sequences,
                             int64_t first_layer, int64_t layers) {
  FillInput(sequences, run);
  const std::vector<int32_t> bounds = CumulativeLengths(sequences, run.input().cols);
  RunObserver nobody;
  const auto result = run.Encode(first_layer, layers, {.cu_seqlens = bounds, .bias = {}}, nobody);
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  std::vector<Sequence> outputs;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    Sequence& output = outputs.emplace_back();
    for (int32_t r = bounds[i]; r < bounds[i + 1]; ++r) {
      output.insert(output.end(), result->row(r), result->row(r) + result->cols);
    }
  }
  return outputs;
}

std::vector<Sequence> Encode(EncoderRun& run, const Encoder& encoder,
                             const std::vector<Sequence>& sequences) {
  return Encode(run, sequences, 0, encoder.description().layers);
}

std::vector<Sequence> ApplyHead(EncoderRun& run, HeadKind head, const std::vector<Sequence>& rows) {
  std::vector<Sequence> outputs(rows.size());
  run.ApplyHead(
      head, static_cast<int64_t>(rows.size()),
      [&](int64_t row, absl::Span<float> input) {
        if (input.size() != rows[row].size()) throw std::runtime_error("a row of another width");
        std::copy(rows[row].begin(), rows[row].end(), input.begin());
      },
      [&](int64_t row, absl::Span<float> output) {
        outputs[row].assign(output.begin(), output.end());
      });
  return outputs;
}

void ExpectPredictedMemory(const ModelDescription& model, WeightSource& weights) {
  const auto encoder = LoadEncoder(model, weights);
  EXPECT_LE(encoder->weight_bytes(), *Encoder::PredictLoadBytes(model));
  for (const int64_t tokens : {1, 100, 1024}) {
    const EncoderRun run(encoder, tokens, 2);
    EXPECT_LE(run.bytes(), *EncoderRun::PredictBytes(model, tokens, 2));
  }
}

bool BitEqual(const Sequence& a, const Sequence& b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

}  // namespace attendant::test_support
