// HttpReply, the way back of a call to the HTTP port.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "server/http/http_message.h"

namespace attendant::server {

// Wakes the thread of the HTTP port from any other. Allocates nothing once made.
class HttpWaker {
 public:
  HttpWaker();  // throws std::system_error if the process may open no descriptor
  ~HttpWaker();
  HttpWaker(const HttpWaker&) = delete;
  HttpWaker& operator=(const HttpWaker&) = delete;

  int event() const { return event_; }  // descriptor that poll finds readable from Wake to Reset
  void Wake() noexcept;
  void Reset() noexcept;

 private:
  const int event_;
};

// Outlives the server if need be; nothing is sent then.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpWaker> waker) : waker_(std::move(waker)) {}

  // To be called once at most. Any thread.
  void Send(HttpAnswer answer) noexcept {
    answer_ = std::move(answer);
    sent_.store(true, std::memory_order_release);
    waker_->Wake();
  }
  // Whether Send was called, so that Take may be. For the thread of the HTTP port.
  bool sent() const { return sent_.load(std::memory_order_acquire); }
  HttpAnswer Take() { return std::move(answer_); }

 private:
  const std::shared_ptr<HttpWaker> waker_;
  HttpAnswer answer_;
  std::atomic<bool> sent_ = false;
};

}  // namespace attendant::server
