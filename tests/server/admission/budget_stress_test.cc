// Random requests, withdrawals and releases: on one thread compared with a model, and on many
// threads.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/admission/budget.h"

namespace attendant::server {
namespace budget_stress_test {

constexpr int64_t kMemory = 100;

// Each step asks, withdraws or frees; then the model says which requests must hold a permit.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}
  ~Model() { pending_.clear(); }  // before the permits, so that none of these is granted their room

  void Step() {
    const unsigned kind = random_() % 4;
    if (kind < 2) {
      Ask();
    } else if (kind == 2 && !pending_.empty()) {
      auto pending = std::next(pending_.begin(), Index(pending_.size()));
      std::erase_if(waiting_, [&](const Asked& asked) { return asked.id == pending->first; });
      const std::unique_ptr<Budget::Pending> withdrawn = std::move(pending->second);
      pending_.erase(pending);
      GrantInOrder();
    } else if (kind == 3 && !permits_.empty()) {
      auto permit = std::next(permits_.begin(), Index(permits_.size()));
      held_ -= permit->second.amount();
      GrantInOrder();
      const Budget::Reservation freed = std::move(permit->second);
      permits_.erase(permit);
    }
    EXPECT_EQ(granted_, expected_);
    const BudgetCounts counts = budget_.counts();
    EXPECT_EQ(counts.waiting, static_cast<int64_t>(waiting_.size()));
    EXPECT_EQ(counts.all(), held_);
    EXPECT_LE(counts.all(), kMemory);
  }

 private:
  struct Asked {
    int id;
    int64_t bytes;
  };

  std::ptrdiff_t Index(size_t size) { return static_cast<std::ptrdiff_t>(random_() % size); }

  void Ask() {
    const int id = last_id_++;
    const int64_t bytes = static_cast<int64_t>(random_() % (kMemory + 1));
    waiting_.push_back({id, bytes});
    GrantInOrder();
    pending_[id] = budget_.Await({"", bytes}, [this, id](Budget::Reservation permit) {
      granted_.push_back(id);
      permits_[id] = std::move(permit);
    });
  }

  void GrantInOrder() {
    while (!waiting_.empty() && held_ + waiting_.front().bytes <= kMemory) {
      held_ += waiting_.front().bytes;
      expected_.push_back(waiting_.front().id);
      waiting_.pop_front();
    }
  }

  std::mt19937 random_;
  Budget budget_{{kMemory}};
  std::map<int, std::unique_ptr<Budget::Pending>> pending_;
  std::map<int, Budget::Reservation> permits_;
  std::deque<Asked> waiting_;
  std::vector<int> granted_, expected_;
  int64_t held_ = 0;
  int last_id_ = 0;
};

TEST(BudgetModelTest, RandomStepsAgreeWithTheModel) {
  for (unsigned seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Model model(seed);
    for (int i = 0; i < 500 && !testing::Test::HasFailure(); ++i) model.Step();
  }
}

// One request of the stress test, which asks and then either withdraws or receives.
class Receiver {
 public:
  Receiver(Budget& budget, std::atomic<int64_t>& held) : budget_(budget), held_(held) {}

  void Receive(int64_t bytes, bool withdraw) {
    auto pending = budget_.Await({"", bytes},
                                 [this](Budget::Reservation permit) { Ready(std::move(permit)); });
    ASSERT_NE(pending, nullptr);
    if (!withdraw) granted_.WaitForNotification();
    std::this_thread::yield();
    pending.reset();
    gone_ = true;  // unsynchronised on purpose, since no `ready` may still run
    if (permit_.empty()) return;
    held_ -= bytes;
    permit_.Release();
  }

 private:
  void Ready(Budget::Reservation permit) {
    std::this_thread::yield();  // lets a withdrawal come in between now and then
    EXPECT_FALSE(gone_);
    EXPECT_LE(held_ += permit.amount(), kMemory);
    permit_ = std::move(permit);
    granted_.Notify();
  }

  Budget& budget_;
  std::atomic<int64_t>& held_;
  bool gone_ = false;
  absl::Notification granted_;
  Budget::Reservation permit_;
};

TEST(BudgetStressTest, LimitsHoldAndNoRequestIsForgottenOrCalledLate) {
  constexpr int kThreads = 4, kRequests = 3000, kSlots = 3;
  Budget slots({kSlots}), budget({kMemory});
  std::atomic<int64_t> held{0}, inflight{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRequests; ++i) {
        Budget::Reservation slot;
        if (slots.TryTake({"", 1}, slot) == Budget::Answer::kTaken) {
          EXPECT_LE(++inflight, kSlots);
        }
        Receiver(budget, held)
            .Receive(static_cast<int64_t>(random() % (kMemory + 1)), random() % 3 == 0);
        if (!slot.empty()) --inflight;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const BudgetCounts counts = budget.counts();
  EXPECT_EQ(slots.counts().all(), 0);
  EXPECT_EQ(counts.all(), 0);
  EXPECT_EQ(counts.waiting, 0);
}

}  // namespace budget_stress_test
}  // namespace attendant::server
