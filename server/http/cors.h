// CorsPolicy: which pages of other origins may call the HTTP port from a browser, by the Fetch
// standard.
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
  // "*" allows all origins. An empty list allows none.
  explicit CorsPolicy(std::vector<std::string> origins = {}) : origins_(std::move(origins)) {}

  // Returns headers for any response to the request; none if its origin is not allowed.
  std::vector<std::pair<std::string, std::string>> HeadersFor(const HttpRequest& request) const;

  // Returns the response to a preflight request, without HeadersFor(request); nullopt for other
  // requests or if the origin is not allowed.
  std::optional<HttpAnswer> PreflightAnswer(const HttpRequest& request) const;

 private:
  bool Allows(const std::string& origin) const;

  const std::vector<std::string> origins_;
};

}  // namespace attendant::server
