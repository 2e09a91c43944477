// A request as the HTTP port reads it, and the answer to it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace attendant::server {

struct HttpRequest {
  std::string_view method;
  std::string_view path;  // without the query
  bool has_body = false;
  std::string authorization = {};  // the header; empty: none
  bool has_certificate = true;     // that the server asks for, or it asks for none
  std::string peer = {};           // as gRPC names it, "ipv4:10.0.0.1:5000"
  absl::Status call_room = {};     // an error: the HTTP port has no place for a call
  // Returns the value of a header, several values separated by commas; empty if there is none. May
  // be null, for a request without headers.
  std::function<std::string(const char* name)> header = {};

  std::string Header(const char* name) const {
    return header == nullptr ? std::string() : header(name);
  }
};

class HttpContent;

struct HttpAnswer {
  unsigned status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow = {};         // for 405, the methods of the path
  std::string authenticate = {};  // for 401, the scheme of `authorization`
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
  std::shared_ptr<HttpContent> content = {};                      // instead of `body`, unless null
};

}  // namespace attendant::server
