// The server's web page: its load, its models, and a form to try them.
#pragma once

#include <string>

#include "server/http/http_routes.h"

namespace attendant::server {

// Settings that the page shows or depends on.
struct PageFacts {
  bool rest = true;     // there is /v2
  bool tokens = false;  // calls need a token
};

// Returns the routes of `/` and of the files below /page. They contain no secrets and require
// neither token nor certificate; all figures come from /metrics and /v2, which do. A content policy
// restricts the page to this port. Browsers cache the files and revalidate them each time.
HttpRoutes PageRoutes(const PageFacts& facts);

// Returns the page's address for a browser on this machine, for an HTTP port that listens at
// `address` and `port`, with or without TLS: "http://localhost:8002/".
std::string PageUrl(const std::string& address, int port, bool tls);

}  // namespace attendant::server
