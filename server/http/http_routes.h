// The routes of the HTTP port.
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

// Returns the response of the route's handler; 404 for an unknown path, 405 for another method of a
// known path, and 413 for a request with a body, because no route takes one. A GET route also
// serves HEAD, with the same response; its body is not sent.
HttpAnswer AnswerFrom(const std::vector<HttpRoute>& routes, const HttpRequest& request);

}  // namespace attendant::server
