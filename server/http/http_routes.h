// The table of what the HTTP port serves, and the choice of the answer to a request.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attendant::server {

struct HttpRequest {
  std::string_view method;
  std::string_view path;  // without the query
  bool has_body = false;
  std::string authorization = {};  // the header; empty: none
  bool has_certificate = true;     // that the server asks for, or it asks for none
};

struct HttpAnswer {
  unsigned status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow = {};         // for 405, the methods of the path
  std::string authenticate = {};  // for 401, the scheme of `authorization`
};

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
