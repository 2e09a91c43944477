#include "server/admission/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"

namespace attendant::server {
namespace budget_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Answer = Budget::Answer;

TEST(BudgetTest, GivesWhatThereIs) {
  Budget budget({10});
  Budget::Reservation first, second, third;
  EXPECT_EQ(budget.TryTake({"a", 6}, first), Answer::kTaken);
  EXPECT_EQ(first.amount(), 6);
  EXPECT_EQ(budget.TryTake({"b", 5}, second), Answer::kNoRoom);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(budget.TryTake({"b", 4, HeldFor::kAnswer}, second), Answer::kTaken);
  EXPECT_EQ(budget.TryTake({"c", 11}, third), Answer::kNever);
  EXPECT_EQ(budget.TryTake({"c", -1}, third), Answer::kNever);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kRequest), 6);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kAnswer), 4);
  EXPECT_EQ(budget.counts().all(), 10);
  first.Release();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(budget.counts().all(), 4);
  EXPECT_EQ(budget.counts().taken, 2);
}

TEST(BudgetTest, TheTotalMayChangeToNoLessThanWhatIsHeld) {
  Budget budget({10});
  Budget::Reservation first, second;
  budget.TryTake({"a", 6}, first);
  EXPECT_FALSE(budget.SetLimits({5}));
  EXPECT_EQ(budget.total(), 10);
  EXPECT_TRUE(budget.SetLimits({6}));
  EXPECT_EQ(budget.TryTake({"b", 1}, second), Answer::kNoRoom);
  EXPECT_EQ(budget.TryTake({"b", 7}, second), Answer::kNever);
  const auto pending =
      budget.Await({"b", 4}, [&](Budget::Reservation hold) { second = std::move(hold); });
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(budget.SetLimits({10}));
  EXPECT_EQ(second.amount(), 4);
}

TEST(BudgetTest, TheTotalMayChangeToNoLessThanWhatAClaimWaitsFor) {
  Budget budget({10});
  Budget::Reservation first, second;
  budget.TryTake({"a", 3}, first);
  const auto pending =
      budget.Await({"b", 8}, [&](Budget::Reservation hold) { second = std::move(hold); });
  EXPECT_FALSE(budget.SetLimits({7}));
  EXPECT_TRUE(budget.SetLimits({8}));
  first.Release();
  EXPECT_EQ(second.amount(), 8);
}

TEST(BudgetTest, AHoldMovesWithWhatItHas) {
  Budget budget({10});
  Budget::Reservation first, second;
  budget.TryTake({"a", 6}, first);
  budget.TryTake({"b", 3}, second);
  Budget::Reservation third = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(third.amount(), 6);
  second = std::move(third);  // gives back the three
  EXPECT_EQ(budget.counts().all(), 6);
}

TEST(BudgetTest, AHoldGivesAPartToAnother) {
  Budget budget({10});
  Budget::Reservation first, second, third, none;
  budget.TryTake({"a", 6, HeldFor::kReceiving}, first);
  budget.TryTake({"b", 3}, second);
  first.Give(2, second);
  EXPECT_EQ(first.amount(), 4);
  EXPECT_EQ(second.amount(), 5);
  EXPECT_EQ(budget.held_by("a"), 4);
  EXPECT_EQ(budget.held_by("b"), 5);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kReceiving), 4);
  first.Give(-1, second);
  first.Give(1, third);
  EXPECT_EQ(budget.held_by("a"), 4);
  first.Give(100, third);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(third.amount(), 4);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kReceiving), 4);
  none.Give(1, third);
  EXPECT_EQ(third.amount(), 4);
  third.Release();
  EXPECT_EQ(budget.counts().all(), 5);
}

TEST(BudgetTest, OneUseMayHaveSeveralHolds) {
  Budget budget({10});
  Budget::Reservation permit, more, others;
  budget.TryTake({"a", 4}, permit);
  budget.TryTake({"b", 3}, others);
  EXPECT_EQ(budget.TryTake({"a", 1}, more), Answer::kShare);
  EXPECT_EQ(budget.TryTake({"a", 1}, more, /*exempt=*/4), Answer::kTaken);
  EXPECT_EQ(more.Change(2, HeldFor::kRequest), Answer::kShare);
  EXPECT_EQ(more.Change(2, HeldFor::kRequest, /*exempt=*/4), Answer::kTaken);
}

TEST(BudgetTest, AHoldChangesSizeAndPurpose) {
  Budget budget({10});
  Budget::Reservation hold, other, none;
  budget.TryTake({"a", 4, HeldFor::kReceiving}, hold);
  EXPECT_EQ(hold.Change(7, HeldFor::kRequest), Answer::kTaken);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kReceiving), 0);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kRequest), 7);
  budget.TryTake({"b", 2}, other);
  EXPECT_EQ(hold.Change(9, HeldFor::kAnswer), Answer::kNoRoom);
  EXPECT_EQ(hold.Change(11, HeldFor::kAnswer), Answer::kNever);
  EXPECT_EQ(hold.amount(), 7);
  EXPECT_EQ(budget.counts().held_for(HeldFor::kRequest), 9);
  EXPECT_EQ(hold.Change(0, HeldFor::kAnswer), Answer::kTaken);
  EXPECT_EQ(hold.Change(8, HeldFor::kAnswer), Answer::kTaken);
  EXPECT_EQ(none.Change(5, HeldFor::kAnswer), Answer::kTaken);
  EXPECT_EQ(budget.counts().all(), 10);
}

TEST(BudgetTest, LessMakesRoomForWhatWaits) {
  Budget budget({10});
  Budget::Reservation hold, met;
  budget.TryTake({"a", 8}, hold);
  auto pending =
      budget.Await({"b", 5}, [&](Budget::Reservation granted) { met = std::move(granted); });
  EXPECT_EQ(budget.counts().waiting, 1);
  hold.Change(5, HeldFor::kAnswer);
  EXPECT_EQ(met.amount(), 5);
}

TEST(FairShareTest, APeerAloneLeavesTheReserve) {
  Budget budget({10, 2});
  std::vector<Budget::Reservation> holds(9);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(budget.TryTake({"a", 1}, holds[i]), Answer::kTaken);
  EXPECT_EQ(budget.TryTake({"a", 1}, holds[8]), Answer::kShare);
  EXPECT_EQ(holds[0].Change(2, HeldFor::kRequest), Answer::kShare);
  EXPECT_EQ(budget.TryTake({"b", 1}, holds[8]), Answer::kTaken);
}

TEST(FairShareTest, WhatIsTheOnlyHoldOfAPeerMayTakeTheReserve) {
  Budget budget({10, 2});
  Budget::Reservation hold;
  EXPECT_EQ(budget.TryTake({"a", 9}, hold), Answer::kTaken);
  EXPECT_EQ(hold.Change(10, HeldFor::kRequest), Answer::kTaken);
}

TEST(FairShareTest, WithOthersAPeerHoldsNoMoreThanIsFree) {
  Budget budget({12, 1});
  std::vector<Budget::Reservation> a(12), b(12);
  budget.TryTake({"b", 1}, b[0]);
  int taken = 0;
  while (budget.TryTake({"a", 1}, a[taken]) == Answer::kTaken) ++taken;
  EXPECT_EQ(taken, 6);  // with five of its own, six were free
  EXPECT_EQ(budget.TryTake({"a", 1}, a[taken]), Answer::kShare);
  taken = 1;
  while (budget.TryTake({"b", 1}, b[taken]) == Answer::kTaken) ++taken;
  EXPECT_EQ(taken, 4);  // with three of its own, three were free
}

TEST(FairShareTest, WhatIsNobodysIsInNoShare) {
  Budget budget({10, 2});
  Budget::Reservation nobodys, first, second;
  budget.TryTake({"", 4}, nobodys);
  budget.TryTake({"a", 3}, first);
  EXPECT_EQ(budget.TryTake({"a", 1}, second), Answer::kTaken);
  EXPECT_EQ(nobodys.Change(6, HeldFor::kRegistered), Answer::kTaken);
}

TEST(FairShareTest, WhoHasItsShareIsPassedOver) {
  Budget budget({10, 2});
  Budget::Reservation hold, more;
  std::vector<std::string> met;
  std::vector<Budget::Reservation> holds;
  const auto wait = [&](const std::string& peer, int64_t amount) {
    return budget.Await({peer, amount}, [&, peer](Budget::Reservation granted) {
      met.push_back(peer);
      holds.push_back(std::move(granted));
    });
  };
  budget.TryTake({"a", 7}, hold);
  auto greedy = wait("a", 2);
  EXPECT_THAT(met, IsEmpty());
  auto other = wait("b", 2);
  EXPECT_THAT(met, ElementsAre("b"));
  hold.Release();
  EXPECT_THAT(met, ElementsAre("b", "a"));
}

TEST(AwaitIdleTest, ReturnsWhenTheLastIsGivenBack) {
  Budget budget({2});
  EXPECT_EQ(budget.AwaitIdle(absl::InfiniteDuration()), 0);
  Budget::Reservation first, last;
  budget.TryTake({"a", 1}, first);
  budget.TryTake({"a", 1}, last);
  EXPECT_EQ(budget.AwaitIdle(absl::ZeroDuration()), 2);
  std::thread draining([&] { EXPECT_EQ(budget.AwaitIdle(absl::InfiniteDuration()), 0); });
  first.Release();
  last.Release();
  draining.join();
}

class PendingTest : public testing::Test {
 protected:
  using Reservation = Budget::Reservation;
  using Pending = Budget::Pending;

  // Keeps the hold and records the order. It is of no peer, so that only room counts.
  std::unique_ptr<Pending> Ask(int id, int64_t amount) {
    return budget_.Await({"", amount}, [this, id](Reservation hold) {
      granted_.push_back(id);
      holds_.push_back(std::move(hold));
    });
  }

  Budget budget_{{100}};
  std::vector<int> granted_;
  std::vector<Reservation> holds_;
};

TEST_F(PendingTest, ComesAtOnceWhileThereIsRoom) {
  auto a = Ask(0, 60);
  auto b = Ask(1, 40);
  EXPECT_THAT(granted_, ElementsAre(0, 1));
  EXPECT_EQ(holds_[0].amount(), 60);
  EXPECT_EQ(budget_.counts().all(), 100);
  EXPECT_EQ(budget_.counts().waiting, 0);
  holds_.clear();
  EXPECT_EQ(budget_.counts().all(), 0);
}

TEST_F(PendingTest, OutlivesItsPendingClaim) {
  Ask(0, 60).reset();
  EXPECT_THAT(granted_, ElementsAre(0));
  EXPECT_EQ(budget_.counts().all(), 60);
}

TEST_F(PendingTest, WaitsForRoomInOrderOfAskingAndNoneOvertakes) {
  auto a = Ask(0, 50);
  auto b = Ask(1, 60);
  auto c = Ask(2, 10);  // would fit, but is not the first
  auto d = Ask(3, 90);
  EXPECT_THAT(granted_, ElementsAre(0));
  EXPECT_EQ(budget_.counts().waiting, 3);
  holds_[0].Release();
  EXPECT_THAT(granted_, ElementsAre(0, 1, 2));
  EXPECT_EQ(budget_.counts().all(), 70);
  holds_[1].Release();
  EXPECT_THAT(granted_, ElementsAre(0, 1, 2, 3));
}

TEST_F(PendingTest, RefusesWhatNeverFits) {
  EXPECT_EQ(Ask(0, 101), nullptr);
  EXPECT_EQ(Ask(1, -1), nullptr);
  EXPECT_THAT(granted_, IsEmpty());
  EXPECT_NE(Ask(2, 100), nullptr);
  EXPECT_NE(Ask(3, 0), nullptr);
  EXPECT_THAT(granted_, ElementsAre(2, 3));
}

TEST_F(PendingTest, WithdrawnIsNeverGranted) {
  auto a = Ask(0, 100);
  auto b = Ask(1, 10);
  auto c = Ask(2, 10);
  b.reset();
  EXPECT_EQ(budget_.counts().waiting, 1);
  holds_[0].Release();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
  EXPECT_EQ(budget_.counts().all(), 10);
}

TEST_F(PendingTest, ALargeClaimWithdrawnMakesWayForThoseBehind) {
  auto a = Ask(0, 50);
  auto b = Ask(1, 60);
  auto c = Ask(2, 10);
  b.reset();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST_F(PendingTest, ReadyMayCallEverything) {
  std::unique_ptr<Pending> inner;
  bool inner_ran_inside = true;
  bool returned = false;
  auto outer = budget_.Await({"", 80}, [&](Reservation hold) {
    EXPECT_EQ(budget_.counts().all(), 80);
    inner = Ask(1, 90);
    hold.Release();  // makes room for the inner request, which has to wait until this one returns
    inner_ran_inside = !granted_.empty();
    returned = true;
  });
  EXPECT_TRUE(returned);
  EXPECT_FALSE(inner_ran_inside);
  EXPECT_THAT(granted_, ElementsAre(1));
}

TEST_F(PendingTest, ReadyMayDestroyItsOwnPendingClaimAndWithdrawOthers) {
  auto a = Ask(0, 100);
  std::unique_ptr<Pending> own, other;
  bool ran = false;
  own = budget_.Await({"", 50}, [&](Reservation) {
    own.reset();
    other.reset();
    ran = true;
  });
  other = Ask(2, 1);
  auto last = Ask(3, 1);
  holds_[0].Release();
  EXPECT_TRUE(ran);
  EXPECT_THAT(granted_, ElementsAre(0, 3));
  EXPECT_EQ(budget_.counts().all(), 1);
}

// A hundred thousand requests give up their holds as soon as they get them. Granting must not
// recurse.
TEST_F(PendingTest, AChainOfClaimsThatGiveUpKeepsTheStackFlat) {
  auto first = Ask(0, 100);
  std::vector<std::unique_ptr<Pending>> pending;
  int ran = 0;
  for (int i = 0; i < 100000; ++i) {
    pending.push_back(budget_.Await({"", 100}, [&](Reservation) { ++ran; }));
  }
  holds_[0].Release();
  EXPECT_EQ(ran, 100000);
}

TEST_F(PendingTest, ReadyIsDestroyedWithThePendingClaimOrAfterItsCall) {
  auto captured = std::make_shared<int>(0);
  auto blocker = Ask(0, 100);
  auto withdrawn = budget_.Await({"", 1}, [captured](Reservation) {});
  EXPECT_EQ(captured.use_count(), 2);
  withdrawn.reset();
  EXPECT_EQ(captured.use_count(), 1);
  auto granted = budget_.Await({"", 1}, [captured](Reservation) {});
  holds_[0].Release();
  EXPECT_EQ(captured.use_count(), 1);
}

// The captures of `ready` may themselves own a hold, so that no lock may be held when they are
// destroyed.
TEST_F(PendingTest, AWithdrawnReadyMayOwnAHold) {
  auto a = Ask(0, 100);
  auto b = budget_.Await(
      {"", 1}, [held = std::make_shared<Reservation>(std::move(holds_[0]))](Reservation) {});
  auto c = Ask(2, 100);
  b.reset();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST_F(PendingTest, DestroyingAPendingClaimWaitsForItsReadyOnAnotherThread) {
  auto a = Ask(0, 100);
  absl::Notification running, go;
  bool returned = false;
  auto pending = budget_.Await({"", 1}, [&](Reservation) {
    running.Notify();
    go.WaitForNotification();
    returned = true;
  });
  std::thread granting([&] { holds_[0].Release(); });
  running.WaitForNotification();
  std::thread releasing([&] { go.Notify(); });
  pending.reset();
  EXPECT_TRUE(returned);
  granting.join();
  releasing.join();
}

TEST_F(PendingTest, OtherPendingClaimsMayBeWithdrawnWhileAReadyRuns) {
  auto a = Ask(0, 100);
  absl::Notification running, go;
  auto slow = budget_.Await({"", 50}, [&](Reservation) {
    running.Notify();
    go.WaitForNotification();
  });
  auto withdrawn = Ask(1, 1);
  auto last = Ask(2, 1);
  std::thread granting([&] { holds_[0].Release(); });
  running.WaitForNotification();
  withdrawn.reset();  // must not wait
  EXPECT_EQ(budget_.counts().waiting, 1);
  go.Notify();
  granting.join();
  EXPECT_THAT(granted_, ElementsAre(0, 2));
}

TEST(PendingLifetimeTest, HoldsAndPendingClaimsMayOutliveTheBudget) {
  Budget::Reservation held;
  std::unique_ptr<Budget::Pending> first, second, third;
  int granted = 0;
  {
    Budget budget({10});
    first = budget.Await({"a", 10}, [&](Budget::Reservation hold) { held = std::move(hold); });
    second = budget.Await({"b", 10}, [&](Budget::Reservation) { ++granted; });
    third = budget.Await({"c", 10}, [&](Budget::Reservation) { ++granted; });
  }
  third.reset();
  held.Release();
  EXPECT_EQ(granted, 1);
}

}  // namespace budget_test
}  // namespace attendant::server
