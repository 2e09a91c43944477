// HttpCall, a request of the HTTP port whose body is taken as it comes, and which may be answered
// long after.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "server/http/http_message.h"
#include "server/http/http_reply.h"

namespace attendant::server {

// Has the places and times for calls (HttpLimits). All functions are called on the thread of the
// HTTP port, in this order, and must be quick. If one of them throws, the connection is closed
// without an answer.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  // Some of the body.
  virtual void OnBody(std::string_view bytes) = 0;
  // All of the body has come. Returns the answer, or nothing if that goes by HttpReply later.
  virtual std::optional<HttpAnswer> OnRequest() = 0;
  // The caller does not wait any more for the HttpReply, which is sent nevertheless. Called at most
  // once.
  virtual void OnGone() = 0;
  // The answer has left, or never will: because the connection is lost, or because the time for the
  // body or the answer is over.
  enum class End { kSent, kLost, kTooLate };
  virtual void OnEnd(End end) = 0;
};

// Returns the answer to a request by its body, of which it gets the first 64 KiB. As quick as the
// functions of HttpCall.
using HttpBodyHandler = std::function<HttpAnswer(const std::string& body)>;
inline constexpr size_t kMostHandledBytes = 64 << 10;

// A response that is sent without reading a body, and ends the connection if there is a body; a
// handler of the body; a call; or nothing, if the path belongs to another handler.
using HttpStart =
    std::variant<std::monostate, HttpAnswer, HttpBodyHandler, std::shared_ptr<HttpCall>>;

// Called once the head of a request is complete. The request is gone when it returns.
using HttpCallHandler =
    std::function<HttpStart(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply)>;

}  // namespace attendant::server
