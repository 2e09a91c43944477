// CorsPolicy: which pages of other origins may call the HTTP port from a browser, as the Fetch
// standard has it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_message.h"

namespace attendant::server {

// Immutable.
class CorsPolicy {
 public:
  // "*" stands for all origins. Without any, nothing is allowed.
  explicit CorsPolicy(std::vector<std::string> origins = {}) : origins_(std::move(origins)) {}

  // Returns the headers of any answer to the request; none if its origin is not allowed.
  std::vector<std::pair<std::string, std::string>> HeadersFor(const HttpRequest& request) const;

  // Returns the answer to a request that asks whether another one is allowed, without
  // HeadersFor(request); nothing if it is another request, or its origin is not allowed.
  std::optional<HttpAnswer> PreflightAnswer(const HttpRequest& request) const;

 private:
  bool Allows(const std::string& origin) const;

  const std::vector<std::string> origins_;
};

}  // namespace attendant::server
