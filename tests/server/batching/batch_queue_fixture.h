// BatchQueueTest, the fixture of tests of a queue whose clock and jobs the test decides about.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/server/batching/test_job.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {

inline constexpr absl::Duration kMs = absl::Milliseconds(1);

class BatchQueueTest : public testing::Test {
 protected:
  // Makes jobs with the ids 0, 1, …
  std::shared_ptr<TestJob> Make(int64_t tokens, int model = 0) {
    const int id = made_++;
    return std::make_shared<TestJob>(fates_.at(id), id, tokens, model);
  }
  std::shared_ptr<TestJob> MakeDue(int64_t tokens, absl::Time deadline) {
    std::shared_ptr<TestJob> job = Make(tokens);
    job->deadline = deadline;
    return job;
  }

  std::array<Fate, 64> fates_;
  int made_ = 0;
  FakeClock clock_;
};

}  // namespace attendant::server
