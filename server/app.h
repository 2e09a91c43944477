// App, the server program as one object that owns all of its parts.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// A running server. It starts the HTTP server, loads the models, starts the gRPC server and becomes
// ready. To stop, it reports that it is not ready, completes accepted requests, shuts down the gRPC
// server and ends the compute threads. The HTTP server runs until the object is destroyed.
class App {
 public:
  // Pulls models from the Hub, loads all models and starts serving. Until then, /healthz returns
  // 200 and /readyz 503, and the gRPC port is bound but refuses connections. The message of an
  // error is one line for the user. Problems that can be found without the Hub and without reading
  // weights, such as ports, files and memory, are reported before anything is logged.
  static absl::StatusOr<std::unique_ptr<App>> Start(const Settings& settings);
  // Calls Drain unless it has been called.
  ~App();

  // Stops the server. Reports at once that it is not ready, and refuses new requests with
  // UNAVAILABLE while it completes accepted requests. Those not completed within drain_timeout fail
  // with UNAVAILABLE. Returns when the gRPC server has shut down and the compute threads have
  // ended. Call it at most once.
  void Drain();

 private:
  class Impl;
  explicit App(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
