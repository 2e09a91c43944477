// The packed context, which single heads write: its products have the bits of products of the
// context.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "tests/engine/kernels/attention/attention_batch.h"
#include "tests/support/compute_modes.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace packed_context_test {

constexpr int64_t kOutputs = 40;

class PackedContextTest : public ::testing::TestWithParam<AttentionKind> {
 protected:
  // Returns the product of the context, [rows, kOutputs], which reads the packed input that the
  // attention has written, or makes it of the context's rows.
  static std::vector<float> Project(const AttentionShape& shape, const PackedBatch& batch,
                                    const std::vector<float>& mixing, bool with_packed_input) {
    const ThreadTeam team(2);
    const int64_t width = batch.context_width(), rows = batch.rows(), padded = PaddedRows(rows);
    const std::vector<float> weight = RandomValues(kOutputs * width, 2);
    const auto linear = PackedLinear::Pack(ViewOf(weight, kOutputs, width), {}, shape.mode);
    EXPECT_TRUE(linear.ok()) << linear.status();
    GemmWorkspace gemm(team);
    gemm.Reserve(*linear, padded);
    const PackedInput packed = with_packed_input ? gemm.Prepare(width, rows) : PackedInput();

    std::vector<float> context(padded * width, 0.0f), y(padded * kOutputs);
    AttentionInput input = batch.Input();
    if (!mixing.empty()) {
      const int64_t positions = static_cast<int64_t>(mixing.size()) / shape.linformer.keys;
      input.key_mixing = input.value_mixing = ViewOf(mixing, shape.linformer.keys, positions);
    }
    AttentionWorkspace workspace(2, shape, rows);
    Attention(team, shape, input, batch.sequences, {ViewOf(context, rows, width), packed},
              workspace);
    // The product must read only the packed input.
    if (with_packed_input) context.assign(context.size(), std::numeric_limits<float>::quiet_NaN());
    const MatrixView<const float> x = ViewOf(context, padded, width);
    gemm.Apply(*linear, {x, packed}, ViewOf(y, padded, kOutputs));
    y.resize(rows * kOutputs);
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, PackedContextTest,
                         ::testing::Values(AttentionKind::kSoftmax, AttentionKind::kLinear,
                                           AttentionKind::kLinformer));

TEST_P(PackedContextTest, HasTheContextsBits) {
  const std::vector<float> gates = {0.0f, 0.5f, 1.0f};
  for (const ComputeMode& mode : ModesOfThisCpu({ComputeType::kBf16, ComputeType::kBf16x3})) {
    AttentionShape shape = ShapeOf(3, 20, 24, mode);
    shape.kind = GetParam();
    std::vector<float> mixing;
    if (shape.kind == AttentionKind::kLinformer) {
      shape.linformer.keys = 8;
      mixing = RandomValues(shape.linformer.keys * 700, 3);
    }
    // The longest sequence has more queries than one block of them.
    PackedBatch batch(shape, {5, 700, 0, 33});
    batch.sequences.back().head_gates = gates.data();
    EXPECT_EQ(Project(shape, batch, mixing, true), Project(shape, batch, mixing, false));
  }
}

}  // namespace packed_context_test
}  // namespace attendant
