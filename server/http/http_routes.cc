#include "server/http/http_routes.h"

namespace attendant::server {

HttpAnswer AnswerFrom(const HttpRoutes& routes, const HttpRequest& request) {
  const auto route = routes.find(request.path);
  if (route == routes.end()) return {404, "not found\n"};
  if (request.method != "GET" && request.method != "HEAD") {
    HttpAnswer refusal = {405, "expected the method GET, HEAD\n"};
    refusal.allow = "GET, HEAD";
    return refusal;
  }
  if (request.has_body) return {413, "expected a request without a body\n"};
  return route->second(request);
}

}  // namespace attendant::server
