// Tests of the end of a job.
#include "server/execution/request_job.h"

#include <gtest/gtest.h>

namespace attendant::server {
namespace {

// A caller that has its answer may at once ask for the room that its request took. If the job still
// held it, the server would refuse it now and then.
class ComputeJobTest : public ::testing::Test {
 protected:
  std::unique_ptr<ComputeJob> Make() {
    const auto held = std::make_shared<int>(0);
    held_ = held;
    ComputeRequest request;
    // Owns `held`, though it is no RegisteredCrossKv.
    request.keys = RegisteredKeys{std::shared_ptr<const RegisteredCrossKv>(held, nullptr)};
    return std::make_unique<ComputeJob>(std::move(request), nullptr,
                                        [this](ComputeJob::End result) {
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
  job->Finish(Response(), absl::ZeroDuration());
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

}  // namespace
}  // namespace attendant::server
