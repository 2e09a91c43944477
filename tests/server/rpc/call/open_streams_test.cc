#include "server/rpc/call/open_streams.h"

#include <gtest/gtest.h>

#include <memory>

namespace attendant::server {
namespace open_streams_test {

class FakeStream final : public OpenStream {
 public:
  void Drain() override { ++drained; }

  int drained = 0;
};

TEST(OpenStreamsTest, AllAreDrainedAlsoThoseToCome) {
  OpenStreams open;
  const auto now = std::make_shared<FakeStream>(), later = std::make_shared<FakeStream>(),
             removed = std::make_shared<FakeStream>();
  open.Add(now);
  open.Add(removed);
  open.Remove(removed.get());
  open.Drain();
  open.Add(later);
  EXPECT_EQ(now->drained, 1);
  EXPECT_EQ(later->drained, 1);
  EXPECT_EQ(removed->drained, 0);
}

}  // namespace open_streams_test
}  // namespace attendant::server
