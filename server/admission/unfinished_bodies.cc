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
  connections_[connection].bodies.merge(begun);
  body->bodies_ = this;
  body->id_ = ++last_id_;
  return body;
}

void UnfinishedBodies::End(const std::string& connection, uint64_t id, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  found->second.finished += bytes;
  Entries& entries = found->second.bodies;
  const auto ended = entries.find(id);
  // All of it came after those that began before it; after the others, nobody knows how much.
  for (auto older = entries.begin(); older != ended; ++older) older->second.finished += bytes;
  entries.erase(ended);
  if (found->second.empty()) connections_.erase(found);
}

void UnfinishedBodies::CountMessage(const std::string& connection, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Connection& of_message = connections_.find(connection)->second;
  of_message.finished += bytes;
  for (auto& [id, entry] : of_message.bodies) entry.finished += bytes;
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
  const Entries& entries = bodies_->connections_.find(connection_)->second.bodies;
  const Entry& oldest = entries.begin()->second;
  int64_t bytes = *received - oldest.received - oldest.finished;
  for (const auto& [id, entry] : entries) {
    if (id != id_) bytes -= std::max<int64_t>(0, entry.charged - kFirstWindow);
  }
  return kFirstWindow + std::max<int64_t>(0, bytes);
}

void UnfinishedBodies::Body::Charge(int64_t bytes) {
  absl::MutexLock lock(&bodies_->mutex_);
  bodies_->connections_.find(connection_)->second.bodies.find(id_)->second.charged = bytes;
}

UnfinishedBodies::AwaitedItem::AwaitedItem(UnfinishedBodies& bodies, std::string connection)
    : bodies_(bodies), connection_(std::move(connection)) {
  absl::MutexLock lock(&bodies_.mutex_);
  ++bodies_.connections_[connection_].awaited_items;
}

UnfinishedBodies::AwaitedItem::~AwaitedItem() {
  absl::MutexLock lock(&bodies_.mutex_);
  const auto found = bodies_.connections_.find(connection_);
  --found->second.awaited_items;
  if (found->second.empty()) bodies_.connections_.erase(found);
}

void UnfinishedBodies::AwaitedItem::Begin(int64_t charged) {
  charged_ = charged;
  int64_t finished = 0;
  {
    absl::MutexLock lock(&bodies_.mutex_);
    finished = bodies_.connections_.find(connection_)->second.finished;
  }
  begun_ = bodies_.BytesOf(connection_);
  if (begun_) *begun_ -= finished;
}

void UnfinishedBodies::AwaitedItem::Finish(int64_t bytes) {
  begun_.reset();
  if (bytes > 0) bodies_.CountMessage(connection_, bytes);
}

int64_t UnfinishedBodies::AwaitedItem::Unexplained() const {
  const std::optional<int64_t> received = begun_ ? bodies_.BytesOf(connection_) : std::nullopt;
  if (!received) return 0;
  absl::MutexLock lock(&bodies_.mutex_);
  const Connection& connection = bodies_.connections_.find(connection_)->second;
  int64_t bytes = *received - connection.finished - *begun_ - charged_;
  for (const auto& [id, entry] : connection.bodies) bytes -= entry.charged;
  return std::max<int64_t>(0, bytes);
}

}  // namespace attendant::server
