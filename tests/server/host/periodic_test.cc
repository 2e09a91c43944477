#include "server/host/periodic.h"

#include <gtest/gtest.h>

#include "absl/synchronization/blocking_counter.h"

namespace attendant::server {
namespace periodic_test {

TEST(PeriodicTest, CallsAgainAndAgain) {
  absl::BlockingCounter calls(3);
  int count = 0;
  const Periodic periodic(absl::Milliseconds(1), [&] {
    if (++count <= 3) calls.DecrementCount();
  });
  calls.Wait();
}

TEST(PeriodicTest, EndsAtOnceWithoutACall) {
  const Periodic periodic(absl::InfiniteDuration(), [] { FAIL(); });
}

}  // namespace periodic_test
}  // namespace attendant::server
