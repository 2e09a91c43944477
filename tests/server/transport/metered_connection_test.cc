#include "server/transport/metered_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/metrics/refusal.h"
#include "tests/support/http2_frames.h"

// Seconds by which the wall clock of this program is ahead.
static std::atomic<int64_t> wall_clock_ahead = 0;

// Replaces libc's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += wall_clock_ahead;
  return result;
}

namespace attendant::server {
namespace metered_connection_test {

using enum http2::FrameType;
using http2::kEndHeaders;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kKiB = 1024;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  const size_t length = payload.size();
  std::string frame = {static_cast<char>(length >> 16),
                       static_cast<char>(length >> 8),
                       static_cast<char>(length),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       static_cast<char>(stream >> 8),
                       static_cast<char>(stream)};
  return frame + payload;
}

// The beginning of a call whose message announces 16 MiB.
std::string HalfSent(uint32_t stream, int64_t bytes) {
  const std::string prefix("\0\1\0\0\0", 5);
  return Frame(kHeaders, kEndHeaders, stream, "") +
         Frame(kData, 0, stream, prefix + std::string(static_cast<size_t>(bytes), 'x'));
}

std::string More(uint32_t stream, int64_t bytes) {
  return Frame(kData, 0, stream, std::string(static_cast<size_t>(bytes), 'x'));
}

class MeteredConnectionTest : public ::testing::Test {
 protected:
  MeteredConnectionTest() { EXPECT_TRUE(Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); }

  bool Receive(const std::string& bytes) const { return connection_->Receive(bytes); }
  int64_t Held() const { return admission_.memory().counts().held_for(HeldFor::kReceiving); }
  // Polls, since nothing signals it.
  void AwaitHeld(int64_t bytes) const {
    while (Held() != bytes) std::this_thread::yield();
  }

  // A call that receives; it notes its `number` if it is given up.
  std::unique_ptr<MeteredConnection::Receiver> Begin(int number, int64_t allowance = 0,
                                                     const std::string& peer = "p") {
    ReceivingCall call = {admission_, peer,
                          [this, number](const absl::Status& status) {
                            absl::MutexLock lock(&mutex_);
                            given_up_.push_back(number);
                            status_ = status;
                          },
                          allowance};
    return std::make_unique<MeteredConnection::Receiver>(connection_, std::move(call));
  }
  std::vector<int> AwaitGivenUp(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] {
      mutex_.AssertReaderHeld();
      return given_up_.size() >= count;
    };
    mutex_.Await(absl::Condition(&enough));
    return given_up_;
  }

  Admission admission_{{.memory = {2048 * kKiB}}};
  const std::shared_ptr<MeteredConnection> connection_ =
      std::make_shared<MeteredConnection>(-1, false, "127.0.0.1 port 5000");
  absl::Mutex mutex_;
  std::vector<int> given_up_;
  absl::Status status_;
};

TEST_F(MeteredConnectionTest, HoldsWhatIsBeyondFirstWindowsAndAllowances) {
  const auto small = Begin(1), body = Begin(2, 128 * kKiB);
  EXPECT_TRUE(Receive(HalfSent(1, 64 * kKiB) + HalfSent(3, 128 * kKiB)));
  EXPECT_EQ(Held(), 0);
  EXPECT_TRUE(Receive(More(3, 1)));
  EXPECT_EQ(Held(), 64 * kKiB);
  EXPECT_TRUE(Receive(More(1, 100 * kKiB)));
  EXPECT_EQ(Held(), 128 * kKiB);
  EXPECT_EQ(admission_.memory().held_by("p"), 128 * kKiB);
  EXPECT_EQ(small->received(), 164 * kKiB);
  body->SetAllowance(64 * kKiB);
  EXPECT_TRUE(Receive(More(1, 1)));
  EXPECT_EQ(Held(), 192 * kKiB);
}

TEST_F(MeteredConnectionTest, GivesBackWhatEitherEndResets) {
  const auto one = Begin(1), two = Begin(2);
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB) + HalfSent(3, 192 * kKiB)));
  EXPECT_EQ(Held(), 192 * kKiB);
  EXPECT_TRUE(Receive(Frame(kReset, 0, 1, "code")));
  AwaitHeld(128 * kKiB);
  connection_->Send(Frame(kReset, 0, 3, "code"));
  AwaitHeld(0);
  EXPECT_THAT(given_up_, IsEmpty());
}

TEST_F(MeteredConnectionTest, GivesBackInTimeWhenTheWallClockJumps) {
  RealClock().Now();  // the first use compares it with the wall clock
  const auto one = Begin(1);
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB)));
  wall_clock_ahead = 3600;
  EXPECT_TRUE(Receive(Frame(kReset, 0, 1, "code")));
  AwaitHeld(0);
  wall_clock_ahead = 0;
}

TEST_F(MeteredConnectionTest, GivesBackWhatIsLeftWhenItIsClosed) {
  const auto one = Begin(1);
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB)));
  connection_->Close();
  EXPECT_EQ(Held(), 0);
  EXPECT_FALSE(Receive(More(1, 1)));
}

TEST_F(MeteredConnectionTest, ACallTakesOverWhatIsHeldForItsMessage) {
  Budget::Reservation permit, others;
  ASSERT_EQ(admission_.memory().TryTake({"p", 64 * kKiB, HeldFor::kReceiving}, permit),
            Budget::Answer::kTaken);
  ASSERT_EQ(admission_.memory().TryTake({"q", 1984 * kKiB - 192 * kKiB}, others),
            Budget::Answer::kTaken);
  const auto body = Begin(1, permit.amount());
  EXPECT_TRUE(Receive(HalfSent(1, 256 * kKiB)));
  EXPECT_EQ(Held(), 256 * kKiB);
  body->SetAllowance(256 * kKiB);  // as if the message were whole
  body->TakeOver(256 * kKiB, permit);
  EXPECT_EQ(permit.amount(), 256 * kKiB);
  EXPECT_EQ(Held(), 256 * kKiB);
}

TEST_F(MeteredConnectionTest, TheNewestCallsEndWhenThereIsNoRoom) {
  Budget::Reservation others;
  ASSERT_EQ(admission_.memory().TryTake({"q", 1984 * kKiB}, others), Budget::Answer::kTaken);
  const auto one = Begin(1), two = Begin(2), three = Begin(3), four = Begin(4);
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB)));
  EXPECT_TRUE(Receive(More(1, 1)));
  EXPECT_THAT(AwaitGivenUp(1), ElementsAre(4));
  EXPECT_EQ(status_.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status_), "memory");
  EXPECT_THAT(std::string(status_.message()), HasSubstr("unfinished requests"));
  EXPECT_TRUE(Receive(More(1, 63 * kKiB)));
  EXPECT_THAT(given_up_, ElementsAre(4));
  EXPECT_TRUE(Receive(More(1, 512 * kKiB)));
  EXPECT_THAT(AwaitGivenUp(2), ElementsAre(4, 3));
  others.Release();
  EXPECT_TRUE(Receive(More(1, 1024 * kKiB)));
  EXPECT_THAT(given_up_, ElementsAre(4, 3));
}

TEST_F(MeteredConnectionTest, WhatCallsThatAreGivenUpHeldIsFreeAtOnce) {
  Budget::Reservation others;
  ASSERT_EQ(admission_.memory().TryTake({"q", 1024 * kKiB}, others), Budget::Answer::kTaken);
  const auto one = Begin(1);
  EXPECT_TRUE(Receive(HalfSent(1, 1024 * kKiB)));
  EXPECT_EQ(Held(), 960 * kKiB);
  EXPECT_TRUE(Receive(More(1, 256 * kKiB)));
  EXPECT_EQ(Held(), 0);  // although the call has not ended
  EXPECT_THAT(AwaitGivenUp(1), ElementsAre(1));
  EXPECT_TRUE(Receive(More(1, 512 * kKiB)));
  EXPECT_EQ(Held(), 0);
  connection_->Send(Frame(kReset, 0, 1, "code"));
  const auto two = Begin(2);
  EXPECT_TRUE(Receive(HalfSent(3, 128 * kKiB)));
  EXPECT_EQ(Held(), 64 * kKiB);
}

TEST_F(MeteredConnectionTest, IsCutWhenItReceivesFurtherMuch) {
  Budget::Reservation others;
  ASSERT_EQ(admission_.memory().TryTake({"q", 2048 * kKiB}, others), Budget::Answer::kTaken);
  {
    const auto one = Begin(1);
    EXPECT_TRUE(Receive(HalfSent(1, (4096 + 64) * kKiB)));
    AwaitGivenUp(1);
  }
  EXPECT_FALSE(Receive(More(1, 1)));
}

TEST_F(MeteredConnectionTest, ACallThatIsAloneHasNoShareToKeep) {
  Budget::Reservation permit, others;
  ASSERT_EQ(admission_.memory().TryTake({"p", 256 * kKiB}, permit), Budget::Answer::kTaken);
  ASSERT_EQ(admission_.memory().TryTake({"q", 512 * kKiB}, others), Budget::Answer::kTaken);
  const auto one = Begin(1, permit.amount());
  EXPECT_TRUE(Receive(HalfSent(1, 1024 * kKiB)));
  EXPECT_EQ(Held(), 768 * kKiB);
  const auto two = Begin(2);
  EXPECT_TRUE(Receive(HalfSent(3, 65 * kKiB)));
  EXPECT_THAT(AwaitGivenUp(1), ElementsAre(2));
  EXPECT_EQ(ReasonOf(status_), "peer_share");
}

TEST_F(MeteredConnectionTest, CallsOfSeveralPeersAreChargedToTheAddress) {
  const auto one = Begin(1), other = Begin(2, 0, "q");
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB)));
  EXPECT_EQ(admission_.memory().held_by("127.0.0.1"), 64 * kKiB);
}

TEST_F(MeteredConnectionTest, WithoutACallForItNothingIsCharged) {
  EXPECT_TRUE(Receive(HalfSent(1, 128 * kKiB)));
  EXPECT_EQ(Held(), 0);
  EXPECT_FALSE(Receive(More(1, 4096 * kKiB)));
}

}  // namespace metered_connection_test
}  // namespace attendant::server
