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

HttpReplyQueue::~HttpReplyQueue() {
  close(event_);
  // One after the other, so that the stack does not grow.
  while (newest_ != nullptr) newest_ = std::move(newest_->next);
}

void HttpReplyQueue::Push(std::shared_ptr<HttpExchange> exchange) noexcept {
  absl::MutexLock lock(&mutex_);
  exchange->next = std::move(newest_);
  newest_ = std::move(exchange);
  eventfd_write(event_, 1);
}

void HttpReplyQueue::Wake() noexcept { eventfd_write(event_, 1); }

std::shared_ptr<HttpExchange> HttpReplyQueue::TakeAll() noexcept {
  absl::MutexLock lock(&mutex_);
  eventfd_t unused;
  eventfd_read(event_, &unused);
  return std::move(newest_);
}

}  // namespace attendant::server
