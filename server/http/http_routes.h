// The table of what the HTTP port serves, and the choice of the answer to a request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/http/http_message.h"

namespace attendant::server {

struct HttpRoute {
  std::string method;
  std::string path;
  std::function<HttpAnswer(const HttpRequest&)> handler;
};

// Returns what the handler of the route answers; 404 if no route has the path, 405 if the path has
// only other methods, and 413 for a request with a body, because no route takes one. A route of GET
// serves HEAD too, with the answer whose body is then not sent.
HttpAnswer AnswerFrom(const std::vector<HttpRoute>& routes, const HttpRequest& request);

}  // namespace attendant::server
