// HttpExchange, a request on its connection, from its head until its response has been sent.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/http/http_call.h"

namespace attendant::server {

struct HttpConnection;
class HttpExchange;

// Answers on their way from any thread to that of the HTTP port. Allocates nothing once made, so
// that no answer is lost for want of memory.
class HttpReplyQueue {
 public:
  HttpReplyQueue();  // throws std::system_error if the process may open no descriptor
  ~HttpReplyQueue();

  int event() const { return event_; }  // descriptor that poll finds readable after Push or Wake
  void Push(std::shared_ptr<HttpExchange> exchange) noexcept;
  void Wake() noexcept;
  // Returns the exchanges pushed since, the newest first, linked by `next`.
  std::shared_ptr<HttpExchange> TakeAll() noexcept;

 private:
  const int event_;
  absl::Mutex mutex_;
  std::shared_ptr<HttpExchange> newest_ ABSL_GUARDED_BY(mutex_);
};

// Everything but Send is for the thread of the HTTP port. Answers after the end of the queue are
// dropped.
class HttpExchange final : public HttpReply, public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(std::weak_ptr<HttpReplyQueue> queue, HttpConnection* on)
      : connection(on), queue_(std::move(queue)) {}

  void Send(HttpAnswer result) noexcept override {
    answer = std::move(result);
    if (const auto queue = queue_.lock()) queue->Push(shared_from_this());
  }

  HttpConnection* connection;      // null once the exchange is over
  std::shared_ptr<HttpCall> call;  // null: there is none
  HttpBodyHandler handler;         // null: there is an answer, or a call
  std::string body;                // for the handler
  HttpAnswer answer;               // to a call: written before Push, read after TakeAll
  std::shared_ptr<HttpExchange> next;

 private:
  const std::weak_ptr<HttpReplyQueue> queue_;
};

}  // namespace attendant::server
