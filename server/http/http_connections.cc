#include "server/http/http_connections.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

using Phase = HttpConnection::Phase;

bool MakesRoom(const HttpConnection& connection) {
  return !connection.has_call() && !connection.closing;
}

}  // namespace

HttpLimits HttpLimitsFor(uint64_t descriptors) {
  constexpr uint64_t kLeast = 4;
  HttpLimits limits;
  const int others = limits.connections - limits.calls;
  const auto share_of = [&](int most) {
    return static_cast<int>(std::clamp(descriptors / 8, kLeast, static_cast<uint64_t>(most)));
  };
  limits.calls = share_of(limits.calls);
  limits.connections = limits.calls + share_of(others);
  return limits;
}

HttpLimits HttpLimitsOfProcess() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return HttpLimitsFor(limit.rlim_cur);
}

HttpConnections::HttpConnections(const HttpLimits& limits) : limits_(limits) {}

HttpConnection* HttpConnections::InTheWayOf(const std::string& address) const {
  const auto open =
      std::count_if(all_.begin(), all_.end(), [](const auto& c) { return !c->closing; });
  if (open < limits_.connections) return nullptr;
  std::map<std::string_view, int> counts = {{address, 1}};
  for (const auto& connection : all_) {
    if (MakesRoom(*connection)) ++counts[connection->address];
  }
  const auto rank = [&](const HttpConnection& connection) {
    return std::tuple(-counts[connection.address], connection.phase != Phase::kIdle,
                      connection.since);
  };
  HttpConnection* first = nullptr;
  for (const auto& connection : all_) {
    if (!MakesRoom(*connection)) continue;
    if (first == nullptr || rank(*connection) < rank(*first)) first = connection.get();
  }
  return first;
}

absl::Status HttpConnections::CheckRoomForCall(const std::string& address) const {
  int calls = 0, of_address = 0;
  for (const auto& connection : all_) {
    calls += connection->has_call();
    of_address += connection->has_call() && connection->address == address;
  }
  if (calls >= limits_.calls) {
    return Refused(Refusal::kSlots, absl::StrCat("all call slots of the HTTP port are taken (",
                                                 calls, " of ", limits_.calls, "); retry later"));
  }
  if (of_address < std::max(1, limits_.calls - limits_.calls / 8)) return absl::OkStatus();
  return Refused(
      Refusal::kPeerShare,
      "the client's address already has its share of the HTTP port's calls; retry later");
}

HttpConnection& HttpConnections::Add(HttpConnection connection) {
  all_.push_back(std::make_unique<HttpConnection>(std::move(connection)));
  return *all_.back();
}

HttpConnection* HttpConnections::Find(int descriptor) const {
  for (const auto& connection : all_) {
    if (connection->descriptor == descriptor) return connection.get();
  }
  return nullptr;
}

void HttpConnections::Remove(int descriptor) {
  std::erase_if(all_, [&](const auto& connection) { return connection->descriptor == descriptor; });
}

void HttpConnections::RemoveUnserved() {
  std::erase_if(all_, [](const auto& connection) { return connection->library == nullptr; });
}

std::optional<HttpConnections::TimePoint> HttpConnections::EndOf(
    const HttpConnection& connection) const {
  if (connection.closing) return std::nullopt;
  absl::Duration time;
  switch (connection.phase) {
    case Phase::kBrief:
      time = limits_.brief_timeout;
      break;
    case Phase::kIdle:
      time = limits_.idle_timeout;
      break;
    case Phase::kReceiving:
      time = limits_.receive_timeout + absl::Seconds(static_cast<double>(connection.received) /
                                                     static_cast<double>(limits_.min_receive_rate));
      break;
    case Phase::kWaiting:
      return std::nullopt;
    case Phase::kSending:
      time = limits_.send_timeout;
      break;
  }
  return connection.since + absl::ToChronoNanoseconds(time);
}

std::optional<HttpConnections::TimePoint> HttpConnections::next_end() const {
  std::optional<TimePoint> next;
  for (const auto& connection : all_) {
    const std::optional<TimePoint> end = EndOf(*connection);
    if (end) next = std::min(next.value_or(*end), *end);
  }
  return next;
}

HttpConnection* HttpConnections::Ended(TimePoint now) const {
  for (const auto& connection : all_) {
    const std::optional<TimePoint> end = EndOf(*connection);
    if (end && *end <= now) return connection.get();
  }
  return nullptr;
}

}  // namespace attendant::server
