// HttpExchange, a request on its connection, from its head until its response has been sent.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "server/http/http_call.h"

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

// Everything but Send is for the thread of the HTTP port.
class HttpExchange final : public HttpReply {
 public:
  explicit HttpExchange(std::shared_ptr<HttpWaker> waker) : waker_(std::move(waker)) {}

  void Send(HttpAnswer result) noexcept override {
    answer = std::move(result);
    answered_.store(true, std::memory_order_release);
    waker_->Wake();
  }
  // Whether Send was called, so that `answer` may be read.
  bool answered() const { return answered_.load(std::memory_order_acquire); }

  std::shared_ptr<HttpCall> call;  // null: there is none
  HttpBodyHandler handler;         // null: there is an answer, or a call
  std::string body;                // for the handler
  HttpAnswer answer;

 private:
  const std::shared_ptr<HttpWaker> waker_;
  std::atomic<bool> answered_ = false;
};

}  // namespace attendant::server
