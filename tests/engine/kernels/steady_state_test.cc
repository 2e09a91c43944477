// Tests that the kernels of an instance that has warmed up allocate nothing on the heap.
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/norm/norm.h"
#include "gmock/gmock.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/compute_modes.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace steady_state_test {

TEST(SteadyStateTest, AttentionNormsAndConversionsAllocateNothing) {
  constexpr int64_t kRows = 700, kHeads = 2, kWidth = 24, kColumns = kHeads * kWidth;
  const ThreadTeam team(2);
  const AttentionShape shape = {
      {.heads = kHeads, .key_width = kWidth, .value_width = kWidth, .score_scale = 0.2f}};
  AttentionShape rounded = shape;
  rounded.mode = BestMode(ComputeType::kBf16);
  const std::vector<float> qkv = RandomValues(kRows * kColumns, 1), ones(kColumns, 1.0f);
  std::vector<float> context(qkv.size()), normal(qkv.size());
  const std::vector<AttentionSequence> sequences = {{0, 60}, {60, 600}, {660, 40}};
  const std::vector<AttentionSequence> shorter = {{0, 1}, {60, 2}, {660, 1}};
  AttentionWorkspace workspace(2, shape, 600), rounded_workspace(2, rounded, 600);
  const MatrixView<const float> x = ViewOf(qkv, kRows, kColumns);
  const auto run = [&](const std::vector<AttentionSequence>& attended) {
    Attention(team, shape, {x, x, x}, attended, ViewOf(context, kRows, kColumns), workspace);
    Attention(team, rounded, {x, x, x}, attended, ViewOf(context, kRows, kColumns),
              rounded_workspace);
    AddLayerNorm(team, ViewOf(context, kRows, kColumns), x, {ones, ones, 1e-5f},
                 ViewOf(normal, kRows, kColumns));
    FromFloat(normal.data(), kRows * kColumns, DataType::kBFloat16, context.data());
  };
  run(shorter);
  const test_support::AllocationCounter allocations;
  run(sequences);
  EXPECT_EQ(allocations.count(), 0);
}

}  // namespace steady_state_test
}  // namespace attendant
