// StartCall, which handles the head of an HTTP request before its body is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_call.h"
#include "server/rest/body_call.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// Returns the name of the client's token; empty if the server has no tokens. Returns an error
// without a valid token for TokenScope::kInfer, or without a certificate if there is a client CA.
absl::StatusOr<std::string> Authorize(const HttpRequest& request, const ServerSecrets& secrets);

// Returns the byte count in a header; the maximum if it is not a number, nullopt if absent.
std::optional<int64_t> LengthIn(const HttpRequest& request, const char* header);

// Responds so that the client sees the answer: at once if it waits for permission to send the body
// (Expect) or the body is too long to read, otherwise after the body.
HttpStart Refuse(HttpAnswer answer, const HttpRequest& request);

struct CallHead {
  const HttpRequest& request;
  const ServiceContext& context;
  std::string method;  // for metrics and logs
  std::string token;   // from Authorize
  // Returns the response to an error, with the time after which to retry.
  std::function<HttpAnswer(const absl::Status& error, absl::Duration retry_after)> error_answer;
};

// Checks the length and encoding of the body, identifies the peer and trace, and takes a slot.
// `make` creates the call. Refused requests are reported.
HttpStart StartCall(const CallHead& head, const std::shared_ptr<HttpReply>& reply,
                    const std::function<std::shared_ptr<HttpCall>(BodyCallArgs entry)>& make);

}  // namespace attendant::server
