// The server program as one object, which owns all of its parts.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/settings/settings.h"

namespace attendant::server {

// A running server. It starts the HTTP server, loads the models, starts the gRPC server and is then
// ready. To stop, it first reports that it is not ready, then answers the accepted requests, shuts
// down the gRPC server and ends the compute threads. The HTTP server runs until the object is
// destroyed.
class App {
 public:
  // Pulls the models of the Hub, loads all models and starts to serve. Until then /healthz answers
  // 200 and /readyz 503, and the gRPC port is taken but refuses connections. The message of an
  // error is one line for the user. Problems that can be found without the Hub and without reading
  // weights, such as those of ports, files and memory, are reported before anything is logged.
  // `clock` must outlive the server.
  static absl::StatusOr<std::unique_ptr<App>> Start(const Settings& settings,
                                                    Clock& clock = RealClock());
  // Calls Drain unless that has been done.
  ~App();

  int port() const;  // gRPC port in use; 0 for a Unix socket
  int http_port() const;

  // Stops the server. It reports at once that it is not ready and refuses new requests with
  // UNAVAILABLE, while it answers the requests that it has accepted. Those that are not answered
  // within drain_timeout fail with UNAVAILABLE. Returns when the gRPC server has shut down and the
  // compute threads have ended. Call it at most once.
  void Drain();

 private:
  class Impl;
  explicit App(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
