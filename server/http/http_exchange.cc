#include "server/http/http_exchange.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace attendant::server {
namespace {

int MakeEvent() {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return event;
}

}  // namespace

HttpReplyQueue::HttpReplyQueue() : event_(MakeEvent()) {}

HttpReplyQueue::~HttpReplyQueue() { close(event_); }

void HttpReplyQueue::Push(std::shared_ptr<HttpExchange> exchange) noexcept {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  exchange->next = std::move(newest_);
  newest_ = std::move(exchange);
  eventfd_write(event_, 1);
}

std::shared_ptr<HttpExchange> HttpReplyQueue::TakeAll() noexcept {
  absl::MutexLock lock(&mutex_);
  eventfd_t unused;
  eventfd_read(event_, &unused);
  return std::move(newest_);
}

void HttpReplyQueue::Close() noexcept {
  std::shared_ptr<HttpExchange> dropped;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    dropped = std::move(newest_);
  }
  while (dropped != nullptr) dropped = std::move(dropped->next);
}

}  // namespace attendant::server
