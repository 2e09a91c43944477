// HttpCall, a request of the HTTP port with a streamed body and a response that may come later.
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

// Uses the places and times for calls (HttpLimits). All functions are called on the HTTP port's
// thread, in this order, and must be quick. If one throws, the connection is closed without a
// response.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  // Receives a part of the body.
  virtual void OnBody(std::string_view bytes) = 0;
  // Called at the end of the body. Returns the response, or nullopt if HttpReply will send it
  // later.
  virtual std::optional<HttpAnswer> OnRequest() = 0;
  // Called, at most once, if the client cancels the call by disconnecting, or the server stops,
  // before the HttpReply, which must be sent nevertheless.
  virtual void OnCancelled() = 0;
  // Called when the response has been sent, or will never be: the connection is lost, or the time
  // for the body or the response is over.
  enum class End { kSent, kLost, kTooLate };
  virtual void OnEnd(End end) = 0;
};

// Returns the response to a request from its body, of which it gets the first 64 KiB. Must be as
// quick as the functions of HttpCall.
using HttpBodyHandler = std::function<HttpAnswer(const std::string& body)>;
inline constexpr size_t kMostHandledBytes = 64 << 10;

// A response sent without reading the body, which ends the connection if there is one; a handler of
// the body; a call; or nothing, if the path belongs to another handler.
using HttpStart =
    std::variant<std::monostate, HttpAnswer, HttpBodyHandler, std::shared_ptr<HttpCall>>;

// Called once the head of a request is complete. The request is invalid afterwards.
using HttpCallHandler =
    std::function<HttpStart(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply)>;

}  // namespace attendant::server
