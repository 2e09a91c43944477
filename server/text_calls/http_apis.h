// HttpApis, all that takes calls on the HTTP port: the text APIs and the Open Inference Protocol.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "server/rest/rest_server.h"
#include "server/text_calls/text_server.h"

namespace attendant::server {

// As its parts.
class HttpApis {
 public:
  HttpApis(const ServerSecrets& secrets, std::string version)
      : texts_(secrets, std::move(version)), rest_(secrets) {}

  void Open(const MethodContext& context) {
    texts_.Open(context);
    rest_.Open(context);
  }

  HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    HttpStart start = texts_.Begin(request, reply);
    return std::holds_alternative<std::monostate>(start) ? rest_.Begin(request, reply) : start;
  }

 private:
  TextServer texts_;
  RestServer rest_;
};

}  // namespace attendant::server
