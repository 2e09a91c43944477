// The HTTP server for probes and metrics: /healthz, /readyz and /metrics. Tensors are only served
// over gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

// Both functions are called on the threads of the HTTP server, several at the same time.
struct HttpHandlers {
  std::function<std::string()> metrics;  // returns Prometheus text
  std::function<bool()> ready;
};

// /healthz answers 200 as long as the process runs, /readyz 200 or 503, /metrics 200, and any other
// path 404.
//
// Methods other than GET are refused with 405, and requests with a body with 413. A header line may
// have at most 8 KiB, and every connection serves one request. The server has a few threads of its
// own, so that slow callers do not affect gRPC. Thread-safe.
class HttpServer {
 public:
  // Binds the port and starts serving. Port 0 stands for any free port. Returns UNAVAILABLE, with
  // the address, port and reason, if the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, int port,
                                                           HttpHandlers handlers);
  // Stops serving and waits for the threads to end.
  ~HttpServer();
  int port() const;  // the port in use

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
