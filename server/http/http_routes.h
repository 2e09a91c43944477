// The routes of the HTTP port.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "server/http/http_message.h"

namespace attendant::server {

// The handlers of GET and HEAD requests, by path. The body of a response to HEAD is not sent.
using HttpRoutes =
    std::map<std::string, std::function<HttpAnswer(const HttpRequest&)>, std::less<>>;

// Returns the response of the path's handler; 404 for an unknown path, 405 for another method, and
// 413 for a request with a body, because no route takes one.
HttpAnswer AnswerFrom(const HttpRoutes& routes, const HttpRequest& request);

}  // namespace attendant::server
