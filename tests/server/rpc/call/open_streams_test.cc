#include "server/rpc/call/open_streams.h"

#include <gtest/gtest.h>

#include <memory>

namespace attendant::server {
namespace open_streams_test {

constexpr int64_t kMiB = int64_t{1} << 20;

class FakeStream final : public OpenStream {
 public:
  explicit FakeStream(int64_t uncharged = 0) : uncharged_(uncharged) {}
  void Drain() override { ++drained; }
  int64_t UnchargedBytes() override { return uncharged_; }
  void Shed() override { ++shed; }

  int drained = 0;
  int shed = 0;

 private:
  const int64_t uncharged_;
};

TEST(OpenStreamsTest, ThoseThatMayHoldMostWithoutChargeAreShed) {
  OpenStreams open;
  EXPECT_EQ(open.ShedUncharged(), 0);
  const auto most = std::make_shared<FakeStream>(12 * kMiB),
             half = std::make_shared<FakeStream>(6 * kMiB),
             less = std::make_shared<FakeStream>(6 * kMiB - 1),
             none = std::make_shared<FakeStream>();
  for (const auto& stream : {most, half, less, none}) open.Add(stream);
  EXPECT_EQ(open.ShedUncharged(), 2);
  EXPECT_EQ(most->shed, 1);
  EXPECT_EQ(half->shed, 1);
  EXPECT_EQ(less->shed, 0);
  open.Remove(most.get());
  open.Remove(half.get());
  EXPECT_EQ(open.ShedUncharged(), 1);
  EXPECT_EQ(less->shed, 1);
  EXPECT_EQ(none->shed, 0);
}

TEST(OpenStreamsTest, LittleIsNoReason) {
  OpenStreams open;
  const auto stream = std::make_shared<FakeStream>(kMiB - 1);
  open.Add(stream);
  EXPECT_EQ(open.ShedUncharged(), 0);
  EXPECT_EQ(stream->shed, 0);
}

TEST(OpenStreamsTest, AllAreDrainedAlsoThoseToCome) {
  OpenStreams open;
  const auto now = std::make_shared<FakeStream>(), later = std::make_shared<FakeStream>(),
             gone = std::make_shared<FakeStream>();
  open.Add(now);
  open.Add(gone);
  open.Remove(gone.get());
  open.Drain();
  open.Add(later);
  EXPECT_EQ(now->drained, 1);
  EXPECT_EQ(later->drained, 1);
  EXPECT_EQ(gone->drained, 0);
}

}  // namespace open_streams_test
}  // namespace attendant::server
