#include "server/admission/awaited_messages.h"

#include <algorithm>

namespace attendant::server {

std::unique_ptr<AwaitedMessages::Place> AwaitedMessages::Add(const std::string& caller,
                                                             GiveUp give_up) {
  std::unique_ptr<Place> place(new Place(*this, caller));
  GiveUp makes_room;
  {
    absl::MutexLock lock(&mutex_);
    OfCaller added;  // first, so that nothing is changed if there is no memory for it
    added.emplace(last_id_ + 1, std::move(give_up));
    callers_[caller].merge(added);
    place->id_ = ++last_id_;
    if (++count_ > most_) makes_room = TakeOldestOfGreediest();
  }
  if (makes_room != nullptr) makes_room();
  return place;
}

AwaitedMessages::GiveUp AwaitedMessages::Take(const std::string& caller, uint64_t id) {
  const auto of_caller = callers_.find(caller);
  if (of_caller == callers_.end()) return nullptr;
  const auto message = of_caller->second.find(id);
  if (message == of_caller->second.end()) return nullptr;
  GiveUp taken = std::move(message->second);
  of_caller->second.erase(message);
  if (of_caller->second.empty()) callers_.erase(of_caller);
  --count_;
  return taken;
}

AwaitedMessages::GiveUp AwaitedMessages::TakeOldestOfGreediest() {
  const auto greediest = std::max_element(
      callers_.begin(), callers_.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  return Take(greediest->first, greediest->second.begin()->first);
}

AwaitedMessages::Place::~Place() {
  GiveUp left;  // destroyed without the lock
  absl::MutexLock lock(&messages_.mutex_);
  left = messages_.Take(caller_, id_);
}

}  // namespace attendant::server
