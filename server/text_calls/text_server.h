// TextServer: the text APIs over HTTP.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/request/quick_method.h"
#include "server/security/server_secrets.h"
#include "server/text_calls/text_path.h"

namespace attendant::server {

// Answers the paths of TextRoutes (server/text_api/text_form.h), /v1/models, /info, /health, /ping
// and /openapi.json, also below /models/NAME, with the admission, queue, deadlines, shares and
// metrics of all requests. Calls need a token for TokenScope::kInfer if there are tokens, and a
// certificate if there is a client CA, except for /health, /ping and /openapi.json. The headers
// X-Request-Timeout and X-Stainless-Read-Timeout are seconds until a request's deadline.
//
// Thread-safe, except for the destructor: stop calling Begin first, and end all jobs.
class TextServer {
 public:
  TextServer(const ServerSecrets& secrets, std::string version)
      : secrets_(secrets), version_(std::move(version)) {}

  // From now on models are served; before, requests are refused with 503. `context` outlives this.
  void Open(const MethodContext& context) { context_ = &context; }

  // An HttpCallHandler.
  HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply);

 private:
  HttpStart Start(const HttpRequest& request, const TextPath& path,
                  const std::shared_ptr<HttpReply>& reply);
  HttpAnswer AnswerPage(const TextPath& path, const MethodContext& context) const;

  const ServerSecrets secrets_;
  const std::string version_;
  std::atomic<const MethodContext*> context_ = nullptr;
};

}  // namespace attendant::server
