// HttpApis, the handlers of calls on the HTTP port: the text APIs and the Open Inference Protocol.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "server/rest/rest_server.h"
#include "server/text_calls/text_server.h"

namespace attendant::server {

// Thread-safe, except for the destructor: stop calling Begin and end all jobs first.
class HttpApis {
 public:
  HttpApis(const ServerSecrets& secrets, std::string version)
      : secrets_(secrets), version_(std::move(version)) {}

  // Call when models are being served. `context` must outlive this object.
  void Open(const MethodContext& context) { context_ = &context; }

  // An HttpCallHandler.
  HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    HttpStart start = StartTextCall(request, reply, secrets_, version_, context_);
    return std::holds_alternative<std::monostate>(start)
               ? StartRestCall(request, reply, secrets_, context_)
               : start;
  }

 private:
  const ServerSecrets secrets_;
  const std::string version_;
  std::atomic<const MethodContext*> context_ = nullptr;
};

}  // namespace attendant::server
