// StartRestCall: the Open Inference Protocol over HTTP.
#pragma once

#include <memory>

#include "server/http/http_call.h"
#include "server/request/quick_method.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// Answers the paths from /v2 on, as the methods of inference.GRPCInferenceService answer over gRPC,
// with the same admission, queue, deadlines, shares and metrics; nothing for other paths. Calls
// need a token for TokenScope::kInfer if there are tokens, and a certificate if there is a client
// CA, except for /v2/health. Errors are as ErrorAnswer (rest_answer.h) has them. `context` is null
// until models are served: everything but /v2/health/live is refused with 503.
HttpStart StartRestCall(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                        const ServerSecrets& secrets, const MethodContext* context);

}  // namespace attendant::server
