// Fails every allocation of the runner of batches, one at a time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "server/execution/batch_executor.h"
#include "server/metrics/refusal.h"
#include "tests/server/support/service_parts.h"
#include "tests/support/allocation_counter.h"

namespace attendant::server {
namespace {

class AllocationFailureTest : public ::testing::Test {
 protected:
  // Runs both layers of "tiny" on one sequence of two ids.
  Piece<ServiceJob> MakeJob(size_t index, bool wants_all) {
    ComputeRequest request;
    request.span = {TestModels().at("tiny"), 0, 2};
    request.layout.sequences = 1;
    request.layout.padded_length = 2;
    request.layout.rows = 2;
    request.layout.cu_seqlens = {0, 2};
    request.layout.positions = {0, 1};
    request.layout.runs = {{0, 2}};
    request.input = KeptIds{{1, 2}, {0, 1}, {}};
    request.outputs.hidden_states.emplace();
    if (wants_all) {
      request.outputs.intermediate_layers = {0};
      request.outputs.attention.layers = {0, 1};
      request.outputs.pooled.emplace();
    }
    auto job = std::make_unique<ComputeJob>(std::move(request), cancelled_,
                                            [this, index](ComputeJob::End result) {
                                              ++ends_[index];
                                              statuses_[index] = result.response.status();
                                            });
    return {ServiceJob(std::move(job)), 0, 1};
  }

  // Returns whether there were so many allocations.
  bool RunWithFailure(int64_t nth) {
    ends_ = {0, 0};
    Batch<ServiceJob> batch;
    batch.pieces.push_back(MakeJob(0, true));
    batch.pieces.push_back(MakeJob(1, false));
    const attendant::testing::FailingAllocation failing(nth);
    executor_.Run(std::move(batch));
    return failing.failed();
  }

  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  ServiceParts parts_{absl::Microseconds(1)};
  const ServiceContext context_ = parts_.Context({1, 1});
  RowPlans row_plans_{context_};
  BatchExecutor executor_{context_, 0, row_plans_};
  std::array<int, 2> ends_ = {};
  std::array<absl::Status, 2> statuses_;
};

TEST_F(AllocationFailureTest, EveryJobEndsOnceAndMostlyOneFails) {
  RunWithFailure(0);  // prepares what is kept between batches
  int alone = 0;
  int64_t nth = 1;
  for (; RunWithFailure(nth); ++nth) {
    SCOPED_TRACE(nth);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(ends_[i], 1);
      if (!statuses_[i].ok()) {
        EXPECT_EQ(ReasonOf(statuses_[i]), "memory") << statuses_[i];
      }
    }
    if (!statuses_[0].ok() && statuses_[1].ok()) ++alone;
  }
  EXPECT_GT(nth, 20);
  EXPECT_GT(alone, 5);
  EXPECT_TRUE(statuses_[0].ok()) << statuses_[0];
  EXPECT_TRUE(statuses_[1].ok()) << statuses_[1];
}

}  // namespace
}  // namespace attendant::server
