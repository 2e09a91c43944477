// HttpReply, which sends a call's response through the HTTP port.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "server/http/http_message.h"

namespace attendant::server {

// Wakes the thread of the HTTP port from any other thread. Does not allocate after construction.
class HttpWaker {
 public:
  HttpWaker();  // throws std::system_error if no descriptor can be opened
  ~HttpWaker();
  HttpWaker(const HttpWaker&) = delete;
  HttpWaker& operator=(const HttpWaker&) = delete;

  int event() const { return event_; }  // readable between Wake and Reset
  void Wake() noexcept;
  void Reset() noexcept;

 private:
  const int event_;
};

// May outlive the server; then nothing is sent.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpWaker> waker) : waker_(std::move(waker)) {}

  // Call at most once. Thread-safe.
  void Send(HttpAnswer answer) noexcept {
    answer_ = std::move(answer);
    sent_.store(true, std::memory_order_release);
    waker_->Wake();
  }
  // Returns whether Send was called, so that Take may be. For the HTTP port's thread.
  bool sent() const { return sent_.load(std::memory_order_acquire); }
  HttpAnswer Take() { return std::move(answer_); }

 private:
  const std::shared_ptr<HttpWaker> waker_;
  HttpAnswer answer_;
  std::atomic<bool> sent_ = false;
};

}  // namespace attendant::server
