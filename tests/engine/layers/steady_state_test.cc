// After its first batch a run allocates nothing, creates no primitive and runs no reorder. Counted
// is every operator new but oneDNN's own (2.6 makes a small map for each product), and oneDNN's
// primitives as they are created and run.
#include <gtest/gtest.h>

#include <utility>

#include "tests/engine/layers/engine_calls.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_weights.h"
#include "tests/support/onednn_counter.h"

namespace attendant::testing {
namespace {

TEST(SteadyStateTest, AllocationsAreCounted) {
  const AllocationCounter allocations;
  const std::vector<Sequence> sequences = RandomSequences({1, 2}, 48, 1);
  EXPECT_GE(allocations.count(), 3);
}

TEST(SteadyStateTest, PrimitivesAndReordersAreCounted) {
  const OneDnnCounter onednn;
  // A shape that nothing else here has.
  const ModelDescription model = SmallModel(1, 5, 11);
  MemoryWeights weights = RandomWeights(model, 1);
  LoadEncoder(model, weights);
  EXPECT_GT(onednn.primitives_created(), 0);
  EXPECT_GT(onednn.reorders_run(), 0);
}

TEST(SteadyStateTest, AllocatesAndCreatesNothing) {
  for (const auto& [placement, type] : {std::pair(NormPlacement::kPost, ComputeType::kF32),
                                        std::pair(NormPlacement::kPre, ComputeType::kF32),
                                        std::pair(NormPlacement::kPost, ComputeType::kBf16x3),
                                        std::pair(NormPlacement::kPost, ComputeType::kBf16),
                                        std::pair(NormPlacement::kPost, ComputeType::kInt8)}) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.norm_placement = placement;
    if (placement == NormPlacement::kPost) model.layer.convolution = {.taps = 3, .groups = 2};
    MemoryWeights weights = RandomWeights(model, 1);
    EncoderRun run(LoadEncoder(model, weights, BestMode(type)), 300, 2);
    const std::vector<Sequence> sequences = RandomSequences({100, 1, 37, 162}, 48, 1);
    const std::vector<int32_t> large = CumulativeLengths(sequences, 48);
    const std::vector<int32_t> small = {0, 5, 70, 71}, wanted = {0, 5, 70};
    RunObserver nobody;
    FillInput(sequences, run);
    ASSERT_TRUE(run.Encode(0, 2, {.cu_seqlens = large, .bias = {}}, nobody).ok());
    const AllocationCounter allocations;
    const OneDnnCounter onednn;
    for (const absl::Span<const int32_t> bounds :
         {absl::MakeConstSpan(small), absl::MakeConstSpan(large)}) {
      run.SetRowPlan({.rows_from = 1});
      EXPECT_TRUE(run.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}}, nobody).ok());
      run.SetRowPlan({});
      EXPECT_TRUE(run.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}}, nobody).ok());
      for (const AttendStage stage :
           {AttendStage::kContext, AttendStage::kProjected, AttendStage::kBlock}) {
        EXPECT_TRUE(run.Attend(1, stage, {.cu_seqlens = bounds, .bias = {}}, nobody).ok());
      }
    }
    const auto memory = run.ProjectMemory(1, {.first_key = 96, .first_value = 160, .rows = 50});
    ASSERT_TRUE(memory.ok());
    const AttentionMemory memories[] = {*memory, *memory, *memory};
    EXPECT_TRUE(run.Attend(1, AttendStage::kBlock,
                           {.cu_seqlens = small, .bias = {}, .memory = memories}, nobody)
                    .ok());
    EXPECT_TRUE(
        run.Encode(0, 2, {.cu_seqlens = small, .bias = {}, .wanted_rows = wanted}, nobody).ok());
    EXPECT_EQ(allocations.count(), 0);
    EXPECT_EQ(onednn.primitives_created(), 0);
    EXPECT_EQ(onednn.reorders_run(), 0);
    EXPECT_GT(onednn.products_run(), 0);
  }
}

}  // namespace
}  // namespace attendant::testing
