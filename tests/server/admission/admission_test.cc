#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"

namespace attendant::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SlotTest, GivesAsManyAsThereAre) {
  Admission admission({.max_inflight = 2});
  auto first = admission.TryTakeSlot();
  auto second = admission.TryTakeSlot();
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(admission.TryTakeSlot(), nullptr);
  EXPECT_EQ(admission.counts().inflight, 2);
  first.reset();
  EXPECT_EQ(admission.counts().inflight, 1);
  EXPECT_NE(admission.TryTakeSlot(), nullptr);
}

TEST(SlotTest, NoneAfterClose) {
  Admission admission({.max_inflight = 2});
  auto slot = admission.TryTakeSlot();
  EXPECT_FALSE(admission.closed());
  admission.Close();
  EXPECT_TRUE(admission.closed());
  EXPECT_EQ(admission.TryTakeSlot(), nullptr);
  EXPECT_EQ(admission.counts().inflight, 1);
  slot.reset();
  EXPECT_EQ(admission.counts().inflight, 0);
  EXPECT_EQ(admission.TryTakeSlot(), nullptr);
}

TEST(SlotTest, AwaitIdleReturnsWhenTheLastIsFreed) {
  Admission admission({.max_inflight = 2});
  EXPECT_EQ(admission.AwaitIdle(absl::InfiniteDuration()), 0);
  auto first = admission.TryTakeSlot();
  auto last = admission.TryTakeSlot();
  absl::Notification idle;
  std::thread draining([&] {
    EXPECT_EQ(admission.AwaitIdle(absl::InfiniteDuration()), 0);
    idle.Notify();
  });
  first.reset();
  EXPECT_FALSE(idle.HasBeenNotified());
  last.reset();
  draining.join();
}

TEST(SlotTest, AwaitIdleSaysHowManyAreLate) {
  Admission admission({.max_inflight = 2});
  auto slot = admission.TryTakeSlot();
  EXPECT_EQ(admission.AwaitIdle(absl::ZeroDuration()), 1);
}

TEST(SlotTest, MayOutliveTheAdmission) {
  std::unique_ptr<Admission::Slot> slot;
  {
    Admission admission({.max_inflight = 1});
    slot = admission.TryTakeSlot();
  }
  slot.reset();
}

class PermitTest : public testing::Test {
 protected:
  using Permit = Admission::Permit;
  using PendingPermit = Admission::PendingPermit;

  // Keeps the permit and records the order.
  std::unique_ptr<PendingPermit> Ask(int id, int64_t bytes) {
    return admission_.RequestPermit(bytes, [this, id](std::unique_ptr<Permit> permit) {
      granted_.push_back(id);
      permits_.push_back(std::move(permit));
    });
  }

  Admission admission_{{.receive_memory_bytes = 100}};
  std::vector<int> granted_;
  std::vector<std::unique_ptr<Permit>> permits_;
};

TEST_F(PermitTest, ComesAtOnceWhileThereIsRoom) {
  auto a = Ask(0, 60);
  auto b = Ask(1, 40);
  EXPECT_THAT(granted_, ElementsAre(0, 1));
  EXPECT_EQ(permits_[0]->bytes(), 60);
  EXPECT_EQ(admission_.counts().receiving_bytes, 100);
  EXPECT_EQ(admission_.counts().waiting, 0);
  permits_.clear();
  EXPECT_EQ(admission_.counts().receiving_bytes, 0);
}

TEST_F(PermitTest, OutlivesItsPendingPermit) {
  Ask(0, 60).reset();
  EXPECT_THAT(granted_, ElementsAre(0));
  EXPECT_EQ(admission_.counts().receiving_bytes, 60);
}

TEST_F(PermitTest, WaitsForRoomInOrderOfAskingAndNoneOvertakes) {
  auto a = Ask(0, 50);
  auto b = Ask(1, 60);
  auto c = Ask(2, 10);  // would fit, but is not the first
  auto d = Ask(3, 90);
  EXPECT_THAT(granted_, ElementsAre(0));
  EXPECT_EQ(admission_.counts().waiting, 3);
  permits_[0].reset();
  EXPECT_THAT(granted_, ElementsAre(0, 1, 2));
  EXPECT_EQ(admission_.counts().receiving_bytes, 70);
  permits_[1].reset();
  EXPECT_THAT(granted_, ElementsAre(0, 1, 2, 3));
}

TEST_F(PermitTest, RefusesWhatNeverFits) {
  EXPECT_EQ(Ask(0, 101), nullptr);
  EXPECT_EQ(Ask(1, -1), nullptr);
  EXPECT_THAT(granted_, IsEmpty());
  EXPECT_NE(Ask(2, 100), nullptr);
  EXPECT_NE(Ask(3, 0), nullptr);
  EXPECT_THAT(granted_, ElementsAre(2, 3));
}

TEST_F(PermitTest, WithdrawnIsNeverGranted) {
  auto a = Ask(0, 100);
  auto b = Ask(1, 10);
  auto c = Ask(2, 10);
  b.reset();
  EXPECT_EQ(admission_.counts().waiting, 1);
  permits_[0].reset();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
  EXPECT_EQ(admission_.counts().receiving_bytes, 10);
}

TEST_F(PermitTest, ALargePendingPermitWithdrawnMakesWayForThoseBehind) {
  auto a = Ask(0, 50);
  auto b = Ask(1, 60);
  auto c = Ask(2, 10);
  b.reset();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST_F(PermitTest, CloseLeavesPendingPermitsAlone) {
  auto a = Ask(0, 100);
  auto b = Ask(1, 100);
  admission_.Close();
  permits_[0].reset();
  EXPECT_THAT(granted_, ElementsAre(0, 1));
}

TEST_F(PermitTest, ReadyMayCallEverything) {
  std::unique_ptr<PendingPermit> inner;
  bool inner_ran_inside = true;
  bool returned = false;
  auto outer = admission_.RequestPermit(80, [&](std::unique_ptr<Permit> permit) {
    EXPECT_EQ(admission_.counts().receiving_bytes, 80);
    inner = Ask(1, 90);
    permit.reset();  // makes room for the inner request, which has to wait until this one returns
    inner_ran_inside = !granted_.empty();
    admission_.Close();
    returned = true;
  });
  EXPECT_TRUE(returned);
  EXPECT_FALSE(inner_ran_inside);
  EXPECT_THAT(granted_, ElementsAre(1));
}

TEST_F(PermitTest, ReadyMayDestroyItsOwnPendingPermitAndWithdrawOthers) {
  auto a = Ask(0, 100);
  std::unique_ptr<PendingPermit> own, other;
  bool ran = false;
  own = admission_.RequestPermit(50, [&](std::unique_ptr<Permit>) {
    own.reset();
    other.reset();
    ran = true;
  });
  other = Ask(2, 1);
  auto last = Ask(3, 1);
  permits_[0].reset();
  EXPECT_TRUE(ran);
  EXPECT_THAT(granted_, ElementsAre(0, 3));
  EXPECT_EQ(admission_.counts().receiving_bytes, 1);
}

// A hundred thousand requests give up their permits as soon as they get them. Granting must not
// recurse.
TEST_F(PermitTest, AChainOfPendingPermitsThatGiveUpKeepsTheStackFlat) {
  auto first = Ask(0, 100);
  std::vector<std::unique_ptr<PendingPermit>> pending;
  int ran = 0;
  for (int i = 0; i < 100000; ++i) {
    pending.push_back(admission_.RequestPermit(100, [&](std::unique_ptr<Permit>) { ++ran; }));
  }
  permits_[0].reset();
  EXPECT_EQ(ran, 100000);
}

TEST_F(PermitTest, ReadyIsDestroyedWithThePendingPermitOrAfterItsCall) {
  auto captured = std::make_shared<int>(0);
  auto blocker = Ask(0, 100);
  auto withdrawn = admission_.RequestPermit(1, [captured](std::unique_ptr<Permit>) {});
  EXPECT_EQ(captured.use_count(), 2);
  withdrawn.reset();
  EXPECT_EQ(captured.use_count(), 1);
  auto granted = admission_.RequestPermit(1, [captured](std::unique_ptr<Permit>) {});
  permits_[0].reset();
  EXPECT_EQ(captured.use_count(), 1);
}

// The captures of `ready` may themselves hold a permit, so that no lock may be held when they are
// destroyed.
TEST_F(PermitTest, AWithdrawnReadyMayOwnAPermit) {
  auto a = Ask(0, 100);
  auto b = admission_.RequestPermit(
      1, [held = std::shared_ptr<Permit>(std::move(permits_[0]))](std::unique_ptr<Permit>) {});
  auto c = Ask(2, 100);
  b.reset();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST_F(PermitTest, DestroyingAPendingPermitWaitsForItsReadyOnAnotherThread) {
  auto a = Ask(0, 100);
  absl::Notification running, go;
  bool returned = false;
  auto pending = admission_.RequestPermit(1, [&](std::unique_ptr<Permit>) {
    running.Notify();
    go.WaitForNotification();
    returned = true;
  });
  std::thread granting([&] { permits_[0].reset(); });
  running.WaitForNotification();
  std::thread releasing([&] { go.Notify(); });
  pending.reset();
  EXPECT_TRUE(returned);
  granting.join();
  releasing.join();
}

TEST_F(PermitTest, OtherPendingPermitsMayBeWithdrawnWhileAReadyRuns) {
  auto a = Ask(0, 100);
  absl::Notification running, go;
  auto slow = admission_.RequestPermit(50, [&](std::unique_ptr<Permit>) {
    running.Notify();
    go.WaitForNotification();
  });
  auto withdrawn = Ask(1, 1);
  auto last = Ask(2, 1);
  std::thread granting([&] { permits_[0].reset(); });
  running.WaitForNotification();
  withdrawn.reset();  // must not wait
  EXPECT_EQ(admission_.counts().waiting, 1);
  go.Notify();
  granting.join();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST(PermitLifetimeTest, PermitsAndPendingPermitsMayOutliveTheAdmission) {
  std::unique_ptr<Admission::Permit> held;
  std::unique_ptr<Admission::PendingPermit> first, second, third;
  int granted = 0;
  {
    Admission admission({.receive_memory_bytes = 10});
    first = admission.RequestPermit(
        10, [&](std::unique_ptr<Admission::Permit> permit) { held = std::move(permit); });
    second = admission.RequestPermit(10, [&](std::unique_ptr<Admission::Permit>) { ++granted; });
    third = admission.RequestPermit(10, [&](std::unique_ptr<Admission::Permit>) { ++granted; });
  }
  third.reset();
  held.reset();
  EXPECT_EQ(granted, 1);
}

}  // namespace
}  // namespace attendant::server
