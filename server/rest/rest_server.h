// StartRestCall: the Open Inference Protocol over HTTP.
#pragma once

#include <memory>

#include "server/http/http_call.h"
#include "server/request/inline_method.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// Handles paths from /v2 on like the methods of inference.GRPCInferenceService over gRPC, with the
// same admission, queue, deadlines, shares and metrics; ignores other paths. Except for /v2/health,
// calls require a token for TokenScope::kInfer if there are tokens, and a certificate if there is a
// client CA. ErrorAnswer (rest_answer.h) formats errors. `context` is null until models are served;
// until then every path but /v2/health/live is refused with 503.
HttpStart StartRestCall(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                        const ServerSecrets& secrets, const MethodContext* context);

}  // namespace attendant::server
