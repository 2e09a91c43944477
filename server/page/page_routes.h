// The page that shows the server: what it does now, its models, and a form to try them.
#pragma once

#include <string>
#include <vector>

#include "server/http/http_routes.h"

namespace attendant::server {

// Settings of the server that the page tells, or asks the user by.
struct PageFacts {
  bool rest = true;     // there is /v2
  bool tokens = false;  // calls need a token
};

// Routes for `/` and the files under /page that it needs. They hold no secret, and so need neither
// token nor certificate; all numbers come from /metrics and /v2, which do. A policy forbids the
// page to run or load anything that is not of this port. A browser keeps the files, and asks each
// time whether they are still the same.
std::vector<HttpRoute> PageRoutes(const PageFacts& facts);

// Returns the page's address for a browser on this machine, where the HTTP port listens at
// `address` and `port`, with TLS or without: "http://localhost:8002/".
std::string PageUrl(const std::string& address, int port, bool tls);

}  // namespace attendant::server
