// RestServer: the Open Inference Protocol over HTTP.
#pragma once

#include <atomic>
#include <memory>

#include "server/http/http_call.h"
#include "server/request/quick_method.h"
#include "server/rest/rest_path.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// Answers the paths from /v2 on, as the methods of inference.GRPCInferenceService answer over gRPC,
// with the same admission, queue, deadlines, shares and metrics. Calls need a token for
// TokenScope::kInfer if there are tokens, and a certificate if there is a client CA, but for
// /v2/health. Errors are as ErrorAnswer (rest_answer.h) has them.
//
// Thread-safe, but for the destructor: by then nobody calls Begin, and all jobs have ended.
class RestServer {
 public:
  explicit RestServer(const ServerSecrets& secrets) : secrets_(secrets) {}

  // From now on models are served; before, everything but /v2/health/live is refused with 503.
  // `context` outlives this.
  void Open(const MethodContext& context) { context_ = &context; }

  // An HttpCallHandler.
  HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply);

 private:
  HttpStart Start(const HttpRequest& request, const RestPath& path,
                  const std::shared_ptr<HttpReply>& reply);
  HttpAnswer AnswerQuick(const RestPath& path, const MethodContext& context) const;

  const ServerSecrets secrets_;
  std::atomic<const MethodContext*> context_ = nullptr;
};

}  // namespace attendant::server
