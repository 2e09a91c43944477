#include "server/http/cors.h"

#include <algorithm>

namespace attendant::server {

bool CorsPolicy::Allows(const std::string& origin) const {
  if (origin.empty()) return false;
  return std::any_of(origins_.begin(), origins_.end(), [&](const std::string& allowed) {
    return allowed == "*" || allowed == origin;
  });
}

std::vector<std::pair<std::string, std::string>> CorsPolicy::HeadersFor(
    const HttpRequest& request) const {
  if (origins_.empty()) return {};
  const std::string origin = request.Header("Origin");
  if (!Allows(origin)) return {};
  return {{"Access-Control-Allow-Origin", origin},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers",
           "Attendant-Reason, Retry-After, Retry-After-Ms, Traceparent"}};
}

std::optional<HttpAnswer> CorsPolicy::PreflightAnswer(const HttpRequest& request) const {
  if (request.method != "OPTIONS" || !Allows(request.Header("Origin")) ||
      request.Header("Access-Control-Request-Method").empty()) {
    return std::nullopt;
  }
  HttpAnswer answer = {204};
  answer.content_type.clear();
  answer.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST"},
                    {"Access-Control-Max-Age", "600"}};
  const std::string headers = request.Header("Access-Control-Request-Headers");
  if (!headers.empty()) answer.headers.emplace_back("Access-Control-Allow-Headers", headers);
  return answer;
}

}  // namespace attendant::server
