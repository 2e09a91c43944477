// HttpRequest, a request of the HTTP port, and HttpAnswer, its response.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/settings/network.h"

namespace attendant::server {

struct HttpRequest {
  std::string_view method;
  std::string_view path;  // without the query
  bool has_body = false;
  std::string authorization = {};  // the header, or empty
  bool has_certificate = true;     // false only if the server requires one
  IpAddress peer = {};
  absl::Status call_room = {};  // an error if the HTTP port has no place for a call
  // Returns the value of a header, with several values separated by commas; empty if absent. May be
  // null for a request without headers.
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
  std::string allow = {};         // for 405, the path's methods
  std::string authenticate = {};  // for 401, the scheme of `authorization`
  std::vector<std::pair<std::string, std::string>> headers = {};  // additional ones
  std::shared_ptr<HttpContent> content = {};                      // replaces `body` unless null
};

}  // namespace attendant::server
