// SimulatedServer, a clock and a server of one queue for tests of the load generator, which takes
// no real time.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "client/load_test/load_clock.h"
#include "client/load_test/load_generator.h"

namespace attendant::client {

// Answers requests one after the other, each after `service`. Waiting delivers the answers that
// fall due, in order. Not thread-safe.
class SimulatedServer : public LoadClock {
 public:
  explicit SimulatedServer(absl::Duration service) : service_(service) {}

  absl::Time Now() override { return now_; }

  void WaitUntil(absl::Time time) override {
    while (!answers_.empty() && answers_.begin()->first <= time) {
      auto answer = answers_.extract(answers_.begin());
      now_ = std::max(now_, answer.key());
      answer.mapped()();
    }
    now_ = std::max(now_, time);
  }

  void Send(LoadContext::Done done) {
    free_at_ = std::max(free_at_, now_) + service_;
    answers_.emplace(free_at_, [done = std::move(done)] { done(Execution()); });
  }

 private:
  const absl::Duration service_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Time free_at_ = absl::UnixEpoch();
  std::multimap<absl::Time, std::function<void()>> answers_;
};

}  // namespace attendant::client
