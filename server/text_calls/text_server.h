// StartHttpCall: the text APIs and the Open Inference Protocol over HTTP.
#pragma once

#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/request/inline_method.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// Handles the paths of TextRoutes (server/text_api/text_form.h), /v1/models, /info, /health, /ping,
// /openapi.json, /api/tags and /api/version, also below /models/NAME, with the common admission,
// queue, deadlines, shares and metrics, and the paths of StartRestCall; ignores others. Except for
// /health, /ping and /openapi.json, calls require a token for TokenScope::kInfer if there are
// tokens, and a certificate if there is a client CA. The headers X-Request-Timeout and
// X-Stainless-Read-Timeout give the seconds to a request's deadline. `version` is the server's;
// `context` is null until models are served; until then requests get 503.
HttpStart StartHttpCall(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                        const ServerSecrets& secrets, const std::string& version,
                        const MethodContext* context);

}  // namespace attendant::server
