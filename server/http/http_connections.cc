#include "server/http/http_connections.h"

#include <algorithm>
#include <utility>

namespace attendant::server {

HttpConnections::HttpConnections(int limit, Duration lifetime)
    : limit_(static_cast<size_t>(limit)),
      limit_per_address_(std::max<size_t>(1, limit_ / 2)),
      lifetime_(lifetime) {
  entries_.reserve(limit_ + 1);  // so that Add does not allocate
}

std::optional<int> HttpConnections::InTheWayOf(const std::string& address) const {
  const auto has_address = [&](const Entry& entry) { return entry.address == address; };
  const auto count = std::count_if(entries_.begin(), entries_.end(), has_address);
  if (static_cast<size_t>(count) >= limit_per_address_) {
    return std::find_if(entries_.begin(), entries_.end(), has_address)->connection;
  }
  if (entries_.size() >= limit_) return entries_.front().connection;
  return std::nullopt;
}

std::optional<int> HttpConnections::Ended(TimePoint now) const {
  if (entries_.empty() || now < entries_.front().end) return std::nullopt;
  return entries_.front().connection;
}

std::optional<HttpConnections::TimePoint> HttpConnections::next_end() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().end;
}

void HttpConnections::Add(int connection, std::string address, TimePoint now) {
  entries_.push_back({connection, std::move(address), now + lifetime_});
}

void HttpConnections::Remove(int connection) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.connection == connection; });
}

}  // namespace attendant::server
