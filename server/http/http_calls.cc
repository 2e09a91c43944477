#include "server/http/http_calls.h"

#include <algorithm>
#include <utility>

#include "server/metrics/refusal.h"

namespace attendant::server {

HttpCalls::HttpCalls(const HttpCallLimits& limits) : limits_(limits) {
  calls_.reserve(static_cast<size_t>(limits.calls));
}

absl::Status HttpCalls::CheckRoomFor(const std::string& peer) const {
  if (static_cast<int>(calls_.size()) >= limits_.calls) {
    return Refused(Refusal::kSlots, "the HTTP port has no place for another call");
  }
  const auto address = [](const std::string& of) { return of.substr(0, of.rfind(':')); };
  const auto same = std::count_if(calls_.begin(), calls_.end(), [&](const auto& exchange) {
    return address(exchange->peer) == address(peer);
  });
  const int of_one = std::max(1, limits_.calls - limits_.calls / 8);
  if (same < of_one) return absl::OkStatus();
  return Refused(Refusal::kPeerShare,
                 "the caller's address has its share of the HTTP port's places");
}

void HttpCalls::Add(std::shared_ptr<HttpExchange> exchange) {
  calls_.push_back(std::move(exchange));
}

void HttpCalls::Remove(int descriptor) {
  std::erase_if(calls_, [&](const auto& exchange) { return exchange->descriptor == descriptor; });
}

std::optional<HttpCalls::TimePoint> HttpCalls::EndOf(const HttpExchange& exchange) const {
  if (exchange.abandoned || exchange.phase == HttpExchange::Phase::kWaiting) return std::nullopt;
  absl::Duration time = limits_.send_timeout;
  if (exchange.phase == HttpExchange::Phase::kReceiving) {
    time = limits_.receive_timeout + absl::Seconds(static_cast<double>(exchange.received) /
                                                   static_cast<double>(limits_.min_receive_rate));
  }
  return exchange.since + absl::ToChronoNanoseconds(time);
}

std::optional<HttpCalls::TimePoint> HttpCalls::next_end() const {
  std::optional<TimePoint> next;
  for (const auto& exchange : calls_) {
    const std::optional<TimePoint> end = EndOf(*exchange);
    if (end) next = std::min(next.value_or(*end), *end);
  }
  return next;
}

std::shared_ptr<HttpExchange> HttpCalls::TakeEnded(TimePoint now) {
  for (const auto& exchange : calls_) {
    const std::optional<TimePoint> end = EndOf(*exchange);
    if (!end || now < *end) continue;
    exchange->abandoned = true;
    return exchange;
  }
  return nullptr;
}

}  // namespace attendant::server
