#include "server/http/cors.h"

#include <algorithm>

namespace attendant::server {
namespace {

bool Allows(const std::vector<std::string>& origins, const std::string& origin) {
  if (origin.empty()) return false;
  return std::any_of(origins.begin(), origins.end(), [&](const std::string& allowed) {
    return allowed == "*" || allowed == origin;
  });
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CorsHeaders(
    const std::vector<std::string>& origins, const HttpRequest& request) {
  if (origins.empty()) return {};
  const std::string origin = request.Header("Origin");
  if (!Allows(origins, origin)) return {};
  return {{"Access-Control-Allow-Origin", origin},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers",
           "Attendant-Reason, Retry-After, Retry-After-Ms, Traceparent"}};
}

std::optional<HttpAnswer> PreflightAnswer(const std::vector<std::string>& origins,
                                          const HttpRequest& request) {
  if (request.method != "OPTIONS" || !Allows(origins, request.Header("Origin")) ||
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
