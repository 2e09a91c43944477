#include "server/admission/unfinished_bodies.h"

#include <algorithm>
#include <utility>

namespace attendant::server {

std::optional<int64_t> UnfinishedBodies::BytesOf(const std::string& connection) const {
  return received_ == nullptr ? std::nullopt : received_(connection);
}

std::unique_ptr<UnfinishedBodies::Body> UnfinishedBodies::Begin(const std::string& connection,
                                                                int64_t charged) {
  const int64_t received = BytesOf(connection).value_or(0);
  std::unique_ptr<Body> body(new Body(connection));
  absl::MutexLock lock(&mutex_);
  Entries begun;  // first, so that nothing is changed if there is no memory for it
  begun.emplace(last_id_ + 1, Entry{received, 0, charged});
  connections_[connection].merge(begun);
  body->bodies_ = this;
  body->id_ = ++last_id_;
  return body;
}

void UnfinishedBodies::CountMessage(const std::string& connection, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  for (auto& [id, entry] : found->second) entry.finished += bytes;
}

void UnfinishedBodies::End(const std::string& connection, uint64_t id, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  Entries& entries = found->second;
  const auto ended = entries.find(id);
  // All of it came after those that began before it; after the others, nobody knows how much.
  for (auto older = entries.begin(); older != ended; ++older) older->second.finished += bytes;
  entries.erase(ended);
  if (entries.empty()) connections_.erase(found);
}

UnfinishedBodies::Body::~Body() { Finish(0); }

void UnfinishedBodies::Body::Finish(int64_t bytes) {
  if (bodies_ == nullptr) return;
  std::exchange(bodies_, nullptr)->End(connection_, id_, bytes);
}

std::optional<int64_t> UnfinishedBodies::Body::Measure() const {
  const std::optional<int64_t> received = bodies_->BytesOf(connection_);
  if (!received) return std::nullopt;
  absl::MutexLock lock(&bodies_->mutex_);
  const Entries& entries = bodies_->connections_.find(connection_)->second;
  const Entry& oldest = entries.begin()->second;
  int64_t bytes = *received - oldest.received - oldest.finished;
  for (const auto& [id, entry] : entries) {
    if (id != id_) bytes -= std::max<int64_t>(0, entry.charged - kFirstWindow);
  }
  return kFirstWindow + std::max<int64_t>(0, bytes);
}

void UnfinishedBodies::Body::Charge(int64_t bytes) {
  absl::MutexLock lock(&bodies_->mutex_);
  bodies_->connections_.find(connection_)->second.find(id_)->second.charged = bytes;
}

}  // namespace attendant::server
