// HttpExchange, a call on its connection, from its head until its answer has left.
#pragma once

#include <microhttpd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/http/http_call.h"

namespace attendant::server {

class HttpExchange;

// Answers on their way from any thread to that of the HTTP port. Allocates nothing once made, so
// that no answer is lost for want of memory.
class HttpReplyQueue {
 public:
  HttpReplyQueue();  // throws std::system_error if the process may open no descriptor
  ~HttpReplyQueue();

  int event() const { return event_; }  // descriptor that poll finds readable after Push
  void Push(std::shared_ptr<HttpExchange> exchange) noexcept;
  // Returns the exchanges pushed since, the newest first, linked by `next`.
  std::shared_ptr<HttpExchange> TakeAll() noexcept;
  // Drops what is there and what is pushed from now on.
  void Close() noexcept;

 private:
  const int event_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<HttpExchange> newest_ ABSL_GUARDED_BY(mutex_);
};

// Everything but Send is for the thread of the HTTP port.
class HttpExchange final : public HttpReply, public std::enable_shared_from_this<HttpExchange> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Its body is received; its answer is waited for, while the connection is suspended; it is sent.
  enum class Phase { kReceiving, kWaiting, kSending };

  // `caller` is HttpRequest::peer.
  HttpExchange(std::shared_ptr<HttpReplyQueue> queue, std::string caller)
      : peer(std::move(caller)), queue_(std::move(queue)) {}

  void Send(HttpAnswer answer) noexcept override {
    answer_ = std::move(answer);
    queue_->Push(shared_from_this());
  }
  HttpAnswer TakeAnswer() { return std::move(answer_); }
  // Whether its caller waits for the answer.
  bool waits() const { return phase == Phase::kWaiting && !gone; }

  const std::string peer;
  std::shared_ptr<HttpCall> call;
  MHD_Connection* connection = nullptr;  // null once it is over
  int descriptor = -1;                   // of the connection
  Phase phase = Phase::kReceiving;
  bool gone = false;       // OnGone was called
  bool abandoned = false;  // ends without an answer
  int64_t received = 0;    // bytes of the body
  TimePoint since = {};    // the start of the phase
  std::shared_ptr<HttpExchange> next;

 private:
  const std::shared_ptr<HttpReplyQueue> queue_;
  HttpAnswer answer_;  // written before Push, read after TakeAll
};

}  // namespace attendant::server
