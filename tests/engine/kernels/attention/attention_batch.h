// PackedBatch, which runs the engine's Attention and that of tests/reference on a packed batch of
// random rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/compute_modes.h"
#include "tests/support/random_values.h"

namespace attendant {

inline constexpr ComputeMode kF32{};

// Returns the modes in which attention differs: kBf16x3 attends like kF32, and kInt8 like kBf16.
inline std::vector<ComputeMode> AttentionModes() {
  return ModesOfThisCpu({ComputeType::kF32, ComputeType::kBf16});
}

inline AttentionShape ShapeOf(int64_t heads, int64_t key_width, int64_t value_width,
                              const ComputeMode& mode) {
  return {{.heads = heads,
           .key_width = key_width,
           .value_width = value_width,
           .score_scale = 1.0f / std::sqrt(static_cast<float>(key_width))},
          /*relative_rows=*/0,
          mode};
}

// A packed batch as the fused projection leaves it, with rows of queries, keys and values side by
// side.
class PackedBatch {
 public:
  PackedBatch(const AttentionShape& shape, std::vector<int64_t> lengths, uint32_t seed = 1)
      : shape_(shape), lengths_(std::move(lengths)) {
    for (const int64_t length : lengths_) {
      sequences.push_back({rows_, length});
      rows_ += length;
    }
    width_ =
        shape.heads * shape.key_width + shape.kv_heads() * (shape.key_width + shape.value_width);
    qkv = RandomValues(rows_ * width_, seed, 2.0f);
  }

  AttentionInput Input() const {
    const MatrixView<const float> all = ViewOf(qkv, rows_, width_);
    const int64_t queries = shape_.heads * shape_.key_width,
                  keys = shape_.kv_heads() * shape_.key_width,
                  values = shape_.kv_heads() * shape_.value_width;
    return {all.Columns(0, queries), all.Columns(queries, keys),
            all.Columns(queries + keys, values), distances};
  }

  int64_t rows() const { return rows_; }
  int64_t context_width() const { return shape_.heads * shape_.value_width; }

  std::vector<float> Run(int team_size, int64_t* fully_masked = nullptr) {
    std::vector<float> context(rows_ * context_width(), -1.0f);
    AttentionWorkspace workspace(team_size, shape_,
                                 *std::max_element(lengths_.begin(), lengths_.end()));
    const int64_t count = Attention(ThreadTeam(team_size), shape_, Input(), sequences,
                                    ViewOf(context, rows_, context_width()), workspace);
    if (fully_masked != nullptr) *fully_masked = count;
    return context;
  }

  reference::SequenceResult Expected(size_t index) const {
    const AttentionSequence& sequence = sequences[index];
    const auto part = [&](MatrixView<const float> view) {
      return reference::Matrix(view.Rows(sequence.row_begin, sequence.length));
    };
    const AttentionInput input = Input();
    return reference::Attend(shape_, part(input.queries), part(input.keys), part(input.values),
                             sequence, distances);
  }

  // The tolerance allows for a probability whose last bit in bfloat16 is rounded the other way.
  void ExpectMatchesReference(double tolerance = 2e-6) {
    if (shape_.mode.type != ComputeType::kF32) tolerance = 8e-3;
    std::vector<float> context = Run(2);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const MatrixView<float> part =
          ViewOf(context, rows_, context_width()).Rows(sequences[i].row_begin, sequences[i].length);
      EXPECT_LT(reference::MaxDifference(Expected(i).context, part), tolerance) << "sequence " << i;
    }
  }

  // Returns the probabilities of the first sequence, [H, length, length]. Expects that they match
  // the reference and that asking for them changes no bit of the context.
  std::vector<float> CheckedProbabilities() {
    const int64_t length = lengths_.front();
    const std::vector<float> context = Run(2);
    std::vector<float> probabilities(shape_.heads * length * length);
    sequences.front().probabilities = probabilities.data();
    EXPECT_EQ(Run(2), context);
    sequences.front().probabilities = nullptr;
    const reference::SequenceResult expected = Expected(0);
    for (int64_t h = 0; h < shape_.heads; ++h) {
      const MatrixView<const float> head{&probabilities[h * length * length], length, length,
                                         length};
      EXPECT_LT(reference::MaxDifference(expected.probabilities[h], head), 1e-6);
    }
    return probabilities;
  }

  std::vector<AttentionSequence> sequences;
  std::vector<float> qkv;
  const AttentionBias* distances = nullptr;

 private:
  AttentionShape shape_;
  std::vector<int64_t> lengths_;
  int64_t rows_ = 0;
  int64_t width_ = 0;
};

class AttentionTest : public testing::TestWithParam<ComputeMode> {
 protected:
  AttentionShape ShapeOf(int64_t heads, int64_t key_width, int64_t value_width) const {
    return attendant::ShapeOf(heads, key_width, value_width, GetParam());
  }
};

}  // namespace attendant
