#include "server/http/http_routes.h"

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

bool Serves(const HttpRoute& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

}  // namespace

HttpAnswer AnswerFrom(const std::vector<HttpRoute>& routes, const HttpRequest& request) {
  std::string allow;
  for (const HttpRoute& route : routes) {
    if (route.path != request.path) continue;
    if (Serves(route, request.method)) {
      return request.has_body ? HttpAnswer{413, "expected a request without a body\n"}
                              : route.handler(request);
    }
    absl::StrAppend(&allow, allow.empty() ? "" : ", ", route.method,
                    route.method == "GET" ? ", HEAD" : "");
  }
  if (allow.empty()) return {404, "not found\n"};
  HttpAnswer refusal = {405, absl::StrCat("expected the method ", allow, "\n")};
  refusal.allow = std::move(allow);
  return refusal;
}

}  // namespace attendant::server
