// StartCall: the head of a request over HTTP with a body, before any of the body is read.
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

// Returns the name of the caller's token; empty if the server has no tokens. The error of a caller
// without a valid token for TokenScope::kInfer, or without a certificate where there is a client
// CA.
absl::StatusOr<std::string> Authorize(const HttpRequest& request, const ServerSecrets& secrets);

// Returns the length in bytes that a header has; the most for one that is not a number; none if it
// is absent.
std::optional<int64_t> LengthIn(const HttpRequest& request, const char* header);

// Returns an answer that the caller sees: at once if he has asked before he sends (Expect), or if
// his body would be too long to wait for; otherwise once he has sent all.
HttpStart Refuse(HttpAnswer answer, const HttpRequest& request);

struct CallHead {
  const HttpRequest& request;
  const ServiceContext& context;
  std::string method;  // for metrics and logs
  std::string token;   // as Authorize returns it
  // Makes the answer to an error, and says after which time to try again.
  std::function<HttpAnswer(const absl::Status& error, absl::Duration retry_after)> error_answer;
};

// Checks the length and encoding of the body, finds the caller's peer and trace, and takes a slot.
// `make` makes the call. A refused request is reported.
HttpStart StartCall(const CallHead& head, const std::shared_ptr<HttpReply>& reply,
                    const std::function<std::shared_ptr<HttpCall>(BodyCallEntry entry)>& make);

}  // namespace attendant::server
