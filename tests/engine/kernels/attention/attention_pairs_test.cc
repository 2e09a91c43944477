// Queries, keys and values that come as pairs of bfloat16: the results have the bits of those that
// attention rounds itself.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/isa.h"
#include "tests/engine/kernels/attention/attention_batch.h"
#include "tests/support/compute_modes.h"

namespace attendant {
namespace attention_pairs_test {

// The context of a batch whose rows have been rounded to pairs before.
std::vector<float> RunOnPairs(const AttentionShape& shape, const PackedBatch& batch) {
  const int64_t width = static_cast<int64_t>(batch.qkv.size()) / batch.rows();
  std::vector<float> rounded(batch.rows() * width / 2);
  for (int64_t r = 0; r < batch.rows(); ++r) {
    ConvertInput({.type = ComputeType::kBf16}, &batch.qkv[r * width], width, nullptr,
                 {&rounded[r * width / 2]});
  }
  const MatrixView<const float> all = ViewOf(rounded, batch.rows(), width / 2);
  const int64_t keys = shape.heads * shape.key_width / 2;
  AttentionInput input = batch.Input();
  input.queries = all.Columns(0, keys);
  input.keys = all.Columns(keys, keys);
  input.values = all.Columns(2 * keys, batch.context_width() / 2);
  input.are_pairs = true;
  std::vector<float> context(batch.rows() * batch.context_width(), -1.0f);
  AttentionWorkspace workspace(2, shape, batch.rows());
  Attention(ThreadTeam(2), shape, input, batch.sequences,
            ViewOf(context, batch.rows(), batch.context_width()), workspace);
  return context;
}

// Returns the shapes of both types that attend in bfloat16, if this CPU takes pairs.
std::vector<AttentionShape> ShapesOfPairs(int64_t key_width, int64_t value_width) {
  std::vector<AttentionShape> shapes;
  for (const ComputeMode& mode : NativeModes({ComputeType::kBf16, ComputeType::kInt8})) {
    const AttentionShape shape = ShapeOf(3, key_width, value_width, mode);
    if (AcceptsBf16Pairs(shape)) shapes.push_back(shape);
  }
  return shapes;
}

TEST(AttentionPairsTest, HaveTheBitsOfRowsThatAttentionRounds) {
  for (const auto& [key_width, value_width] :
       {std::pair<int64_t, int64_t>{64, 64}, {32, 32}, {2, 2}, {20, 24}, {30, 66}}) {
    for (const AttentionShape& shape : ShapesOfPairs(key_width, value_width)) {
      // Few queries and many, an odd number of keys, and more than one block of them.
      PackedBatch batch(shape, {1, 7, 33, 0, 128, 1101});
      EXPECT_EQ(RunOnPairs(shape, batch), batch.Run(2)) << key_width << " " << value_width;
    }
  }
}

TEST(AttentionPairsTest, HaveTheBitsWithinAWindow) {
  for (AttentionShape shape : ShapesOfPairs(64, 64)) {
    shape.window = 37;
    PackedBatch batch(shape, {5, 300, 700});
    EXPECT_EQ(RunOnPairs(shape, batch), batch.Run(2));
  }
}

TEST(AttentionPairsTest, HaveTheBitsWithBiasesAndMasks) {
  for (const AttentionShape& shape : ShapesOfPairs(16, 16)) {
    PackedBatch batch(shape, {40, 90});
    std::vector<float> elements = RandomValues(90 * 90, 3);
    for (size_t i = 0; i < elements.size(); i += 3) {
      elements[i] = -std::numeric_limits<float>::infinity();
    }
    const AttentionBias bias = {elements.data(), 0, 90, 1};
    batch.sequences[1].bias = &bias;
    EXPECT_EQ(RunOnPairs(shape, batch), batch.Run(2));
  }
}

TEST(AttentionPairsTest, AreTakenWhereTheirBitsAreKnown) {
  const ComputeMode bf16 = {.type = ComputeType::kBf16};
  const AttentionShape whole = ShapeOf(2, 8, 8, bf16);
  AttentionShape odd = whole, relative = whole, linear = whole, emulated = whole;
  odd.value_width = 7;
  relative.relative_rows = 4;
  linear.kind = AttentionKind::kLinear;
  emulated.mode.emulate = true;
  for (const AttentionShape& shape : {odd, relative, linear, emulated, ShapeOf(2, 8, 8, {})}) {
    EXPECT_FALSE(AcceptsBf16Pairs(shape));
  }
  EXPECT_EQ(AcceptsBf16Pairs(whole), HasBf16Units() && !HasAmxUnits());
}

}  // namespace attention_pairs_test
}  // namespace attendant
