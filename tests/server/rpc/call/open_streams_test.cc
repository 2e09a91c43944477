#include "server/rpc/call/open_streams.h"

#include <gtest/gtest.h>

namespace attendant::server {
namespace open_streams_test {

TEST(OpenStreamsTest, AllAreDrainedAlsoThoseToCome) {
  OpenStreams open;
  int now = 0, later = 0, gone = 0;
  open.Add(&now, [&] { ++now; });
  open.Add(&gone, [&] { ++gone; });
  open.Remove(&gone);
  open.Drain();
  open.Add(&later, [&] { ++later; });
  EXPECT_EQ(now, 1);
  EXPECT_EQ(later, 1);
  EXPECT_EQ(gone, 0);
}

}  // namespace open_streams_test
}  // namespace attendant::server
