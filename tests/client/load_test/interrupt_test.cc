#include "client/load_test/interrupt.h"

#include <gtest/gtest.h>

namespace attendant::client {
namespace interrupt_test {

TEST(InterruptWatchTest, MarksTheFirstAndRestores) {
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  {
    const InterruptWatch watch;
    EXPECT_FALSE(watch.interrupted());
    raise(SIGINT);
    EXPECT_TRUE(watch.interrupted());
    struct sigaction now = {};
    sigaction(SIGINT, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL);  // a second one ends the process
  }
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_FALSE(InterruptWatch().interrupted());
}

}  // namespace interrupt_test
}  // namespace attendant::client
