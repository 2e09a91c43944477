#include "server/models/health_states.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/allocation_counter.h"

namespace attendant::server {
namespace health_states_test {

using test_support::AllocationCounter;

class CountingWatcher final : public HealthWatcher {
 public:
  void OnChange() override { ++changes; }

  int changes = 0;
};

TEST(HealthStatesTest, ShutdownIsTheLastChangeAndAllocatesNothing) {
  HealthStates states;
  states.Set("m", true);
  const auto watcher = std::make_shared<CountingWatcher>();
  states.Watch(watcher);
  int64_t allocations = 0;
  {
    const AllocationCounter counter;
    states.Shutdown();
    allocations = counter.count();
  }
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(watcher->changes, 1);
  EXPECT_EQ(states.Find("m"), false);
  states.Set("m", true);
  states.Remove("m");
  states.Shutdown();
  EXPECT_EQ(watcher->changes, 1);
  EXPECT_EQ(states.Find("m"), false);
}

TEST(HealthStatesTest, AWatcherThatIsGoneHearsNothing) {
  HealthStates states;
  auto watcher = std::make_shared<CountingWatcher>();
  const auto other = std::make_shared<CountingWatcher>();
  states.Watch(watcher);
  states.Watch(other);
  states.Set("m", true);
  EXPECT_EQ(watcher->changes, 1);
  watcher.reset();
  states.Set("m", false);
  states.Shutdown();
  EXPECT_EQ(other->changes, 3);
}

}  // namespace health_states_test
}  // namespace attendant::server
