// Which pages of other origins may call the HTTP port from a browser, by the Fetch standard.
// `origins` lists their origins; "*" allows all, and an empty list none.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_message.h"

namespace attendant::server {

// Returns headers for any response to the request; none if its origin is not allowed.
std::vector<std::pair<std::string, std::string>> CorsHeaders(
    const std::vector<std::string>& origins, const HttpRequest& request);

// Returns the response to a preflight request, without CorsHeaders; nullopt for other requests or
// if the origin is not allowed.
std::optional<HttpAnswer> PreflightAnswer(const std::vector<std::string>& origins,
                                          const HttpRequest& request);

}  // namespace attendant::server
