// Tests of the end of a job.
#include "server/execution/compute_job.h"

#include <gtest/gtest.h>

#include "tests/server/support/service_parts.h"

namespace attendant::server {
namespace compute_job_test {

// A caller that has its answer may at once ask for the room that its request took. If the job still
// held it, the server would refuse it now and then.
class ComputeJobTest : public ::testing::Test {
 protected:
  std::unique_ptr<ComputeJob> Make(int64_t sequences = 1) {
    const auto held = std::make_shared<int>(0);
    held_ = held;
    ComputeRequest request;
    request.layout.sequences = sequences;
    // Owns `held`, though it is no RegisteredCrossKv.
    request.keys = std::shared_ptr<const RegisteredCrossKv>(held, nullptr);
    return std::make_unique<ComputeJob>(std::move(request), nullptr,
                                        [this](ComputeJob::End result) {
                                          EXPECT_FALSE(ended_) << "it ends once";
                                          ended_ = true;
                                          ok_ = result.response.ok();
                                          EXPECT_TRUE(held_.expired());
                                        });
  }

  std::weak_ptr<const int> held_;
  bool ended_ = false;
  bool ok_ = false;
};

TEST_F(ComputeJobTest, ReleasesItsRequestBeforeItsCallerIsAnswered) {
  const std::unique_ptr<ComputeJob> job = Make();
  EXPECT_FALSE(held_.expired());
  ASSERT_TRUE(job->BeginSlice());
  EXPECT_FALSE(ended_);
  job->EndSlice(1, absl::ZeroDuration(), absl::OkStatus());
  EXPECT_TRUE(ended_);
  EXPECT_TRUE(ok_);
}

TEST_F(ComputeJobTest, ReleasesItsRequestBeforeItsCallerIsRefused) {
  const std::unique_ptr<ComputeJob> job = Make();
  EXPECT_FALSE(held_.expired());
  job->Fail(absl::CancelledError("the caller is gone"));
  EXPECT_TRUE(ended_);
  EXPECT_FALSE(ok_);
}

TEST_F(ComputeJobTest, EndsWhenAllItsSlicesAreComputed) {
  const std::unique_ptr<ComputeJob> job = Make(3);
  ASSERT_TRUE(job->BeginSlice());
  ASSERT_TRUE(job->BeginSlice());
  job->EndSlice(2, absl::ZeroDuration(), absl::OkStatus());
  EXPECT_FALSE(ended_);
  job->EndSlice(1, absl::ZeroDuration(), absl::OkStatus());
  EXPECT_TRUE(ended_ && ok_);
}

TEST_F(ComputeJobTest, ASliceThatFailsFailsItOnceNoSliceIsComputedAnyMore) {
  const std::unique_ptr<ComputeJob> job = Make(4);
  ASSERT_TRUE(job->BeginSlice());
  ASSERT_TRUE(job->BeginSlice());
  EXPECT_TRUE(CheckAwaited(*job, absl::UnixEpoch()).ok());
  job->EndSlice(1, absl::ZeroDuration(), absl::InvalidArgumentError("a value"));
  EXPECT_FALSE(ended_);
  EXPECT_FALSE(CheckAwaited(*job, absl::UnixEpoch()).ok()) << "the rest is not wanted";
  EXPECT_FALSE(job->BeginSlice());
  job->EndSlice(1, absl::ZeroDuration(), absl::OkStatus());
  EXPECT_TRUE(ended_);
  EXPECT_FALSE(ok_);
  job->Fail(absl::CancelledError("the queue drops the rest"));
}

TEST_F(ComputeJobTest, AJobThatTheQueueFailsEndsWithTheSliceThatIsComputed) {
  const std::unique_ptr<ComputeJob> job = Make(2);
  ASSERT_TRUE(job->BeginSlice());
  job->Fail(absl::CancelledError("the caller is gone"));
  EXPECT_FALSE(ended_);
  job->EndSlice(1, absl::ZeroDuration(), absl::OkStatus());
  EXPECT_TRUE(ended_);
  EXPECT_FALSE(ok_);
}

// Two sequences of three and of no tokens.
std::unique_ptr<ComputeJob> TwoSequences() {
  ComputeRequest request;
  request.span = {TestModels().at("tiny"), 0, 2};
  request.layout.sequences = 2;
  request.layout.padded_length = 3;
  request.layout.rows = 6;
  request.layout.cu_seqlens = {0, 3, 3};
  return std::make_unique<ComputeJob>(std::move(request), nullptr, [](ComputeJob::End) {});
}

TEST(PlanJobTest, PredictsWhatTheJobTakes) {
  ServiceParts parts(absl::Seconds(1));
  const std::unique_ptr<ComputeJob> job = TwoSequences();
  PlanJob(parts.Context({1, 1}), *job);
  const CostModel& model = *TestModels().at("tiny")->cost;
  const double expected =
      model.Predict({0, 2}).OfSequence(3, 3) + model.Predict({0, 2}).OfSequence(0, 0);
  ASSERT_EQ(job->slices.size(), 1u);
  EXPECT_EQ(job->slices[0].sequences, 2);
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(job->slices[0].seconds / expected, model.correction(parts.clock.Now()), 1e-6);
}

TEST(PlanJobTest, CutsAJobIntoSlicesOfWholeSequences) {
  ServiceParts parts(absl::Seconds(1));
  ServiceContext context = parts.Context({1, 1});
  context.limits.max_batch_seconds = absl::Nanoseconds(1);
  const std::unique_ptr<ComputeJob> job = TwoSequences();
  PlanJob(context, *job);
  ASSERT_EQ(job->slices.size(), 2u);
  EXPECT_EQ(job->slices[0].tokens, 3);
  EXPECT_EQ(job->slices[1].tokens, 1) << "a sequence without tokens takes some work too";
  context.limits.max_batch_seconds = absl::Hours(1);
  PlanJob(context, *job);
  EXPECT_EQ(job->slices.size(), 1u);
  context.limits.max_batch_tokens = 3;
  PlanJob(context, *job);
  EXPECT_EQ(job->slices.size(), 2u);
}

TEST(PlanJobTest, PredictsARegistrationByItsRowsWhateverItsValuesAreMadeOf) {
  ServiceParts parts(absl::Seconds(1));
  const CostModel& model = *TestModels().at("tiny")->cost;
  const double expected = model.Predict({0, 1, CostedPart::kInputs}).OfSequence(3, 0);
  for (const bool has_values : {false, true}) {
    ComputeRequest request;
    request.span = {TestModels().at("tiny"), 0, 1};
    request.operation = RegisterMemory();
    request.layout.sequences = 1;
    request.layout.cu_seqlens = {0, 0};
    CrossKvRows rows;
    rows.layout.sequences = 2;
    rows.layout.cu_seqlens = {0, 2, 3};
    if (has_values) rows.values.emplace();
    request.keys = std::move(rows);
    ComputeJob job(std::move(request), nullptr, [](ComputeJob::End) {});
    PlanJob(parts.Context({1, 1}), job);
    ASSERT_EQ(job.slices.size(), 1u);
    EXPECT_EQ(job.slices[0].tokens, has_values ? 6 : 3);
    EXPECT_NEAR(job.slices[0].seconds / expected, model.correction(parts.clock.Now()), 1e-6);
  }
}

}  // namespace compute_job_test
}  // namespace attendant::server
