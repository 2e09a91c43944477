#include "server/admission/awaited_messages.h"

namespace attendant::server {

std::unique_ptr<AwaitedMessages::Place> AwaitedMessages::Add(const std::string& caller,
                                                             GiveUp give_up) {
  std::unique_ptr<Place> place;
  GiveUp makes_room;
  {
    absl::MutexLock lock(&mutex_);
    place.reset(new Place(*this, {caller, ++last_number_}));
    awaited_.emplace(place->id_, std::move(give_up));
    if (awaited_.size() > most_) makes_room = TakeOldestOfGreediest();
  }
  if (makes_room != nullptr) makes_room();
  return place;
}

AwaitedMessages::GiveUp AwaitedMessages::Take(const Id& id) {
  const auto message = awaited_.find(id);
  if (message == awaited_.end()) return nullptr;
  GiveUp taken = std::move(message->second);
  awaited_.erase(message);
  return taken;
}

AwaitedMessages::GiveUp AwaitedMessages::TakeOldestOfGreediest() {
  auto oldest = awaited_.begin();
  int64_t most = 0;
  for (auto first = awaited_.begin(), next = first; first != awaited_.end(); first = next) {
    int64_t count = 0;
    for (; next != awaited_.end() && next->first.first == first->first.first; ++next) ++count;
    if (count <= most) continue;
    most = count;
    oldest = first;
  }
  return Take(oldest->first);
}

AwaitedMessages::Place::~Place() {
  GiveUp left;  // destroyed without the lock
  absl::MutexLock lock(&messages_.mutex_);
  left = messages_.Take(id_);
}

}  // namespace attendant::server
