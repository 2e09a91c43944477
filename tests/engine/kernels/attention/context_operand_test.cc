// The context's operand, which single heads write: products of it have the bits of products of the
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
namespace context_operand_test {

constexpr int64_t kOutputs = 40;

class ContextOperandTest : public ::testing::TestWithParam<AttentionKind> {
 protected:
  // Returns the product of the context, [rows, kOutputs], which reads the operand that the
  // attention has written, or makes it of the context's rows.
  static std::vector<float> Project(const AttentionShape& shape, const PackedBatch& batch,
                                    const std::vector<float>& mixing, bool with_operand) {
    const ThreadTeam team(2);
    const int64_t width = batch.context_width(), rows = batch.rows(), padded = PaddedRows(rows);
    const std::vector<float> weight = RandomValues(kOutputs * width, 2);
    const auto linear = PackedLinear::Pack(ViewOf(weight, kOutputs, width), {}, shape.mode);
    EXPECT_TRUE(linear.ok()) << linear.status();
    GemmWorkspace gemm(2);
    gemm.Reserve(*linear, padded);
    const PreparedOperand operand =
        with_operand ? gemm.Prepare(shape.mode, width, rows) : PreparedOperand();

    std::vector<float> context(padded * width, 0.0f), y(padded * kOutputs);
    AttentionInput input = batch.Input();
    if (!mixing.empty()) {
      const int64_t positions = static_cast<int64_t>(mixing.size()) / shape.mixed_keys;
      input.key_mixing = input.value_mixing = ViewOf(mixing, shape.mixed_keys, positions);
    }
    AttentionWorkspace workspace(2, shape, rows);
    Attention(team, shape, input, batch.sequences, {ViewOf(context, rows, width), operand},
              workspace);
    // The product must read the operand alone.
    if (with_operand) context.assign(context.size(), std::numeric_limits<float>::quiet_NaN());
    const MatrixView<const float> x = ViewOf(context, padded, width);
    ApplyLinear(team, *linear, {x, operand}, ViewOf(y, padded, kOutputs), Activation::kIdentity,
                gemm);
    y.resize(rows * kOutputs);
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, ContextOperandTest,
                         ::testing::Values(AttentionKind::kSoftmax, AttentionKind::kLinear,
                                           AttentionKind::kLinformer));

TEST_P(ContextOperandTest, HasTheContextsBits) {
  const std::vector<float> gates = {0.0f, 0.5f, 1.0f};
  for (const ComputeMode& mode : ModesOfThisCpu({ComputeType::kBf16, ComputeType::kBf16x3})) {
    AttentionShape shape = ShapeOf(3, 20, 24, mode);
    shape.kind = GetParam();
    std::vector<float> mixing;
    if (shape.kind == AttentionKind::kLinformer) {
      shape.mixed_keys = 8;
      mixing = RandomValues(shape.mixed_keys * 700, 3);
    }
    // The longest sequence has more queries than one block of them.
    PackedBatch batch(shape, {5, 700, 0, 33});
    batch.sequences.back().head_gates = gates.data();
    EXPECT_EQ(Project(shape, batch, mixing, true), Project(shape, batch, mixing, false));
  }
}

}  // namespace context_operand_test
}  // namespace attendant
