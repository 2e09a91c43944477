// Owns all parts of the server. Start order: HTTP side port -> load -> gRPC -> ready; stop order:
// not ready -> drain -> gRPC -> compute threads.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/batching/clock.h"
#include "server/settings/settings.h"

namespace attendant::server {

class App {
 public:
  // Loads the models and serves. Meanwhile /healthz says 200 and /readyz 503, and nothing listens
  // on the gRPC port yet. Any problem is a Status whose message is one line for the user; what can
  // be found out without reading weights (ports, files, memory) is, before anything is logged.
  // `clock` outlives the server.
  static absl::StatusOr<std::unique_ptr<App>> Start(const Settings& settings,
                                                    Clock& clock = RealClock());
  // Drains, if nobody has.
  ~App();

  int port() const;  // gRPC
  int http_port() const;

  // Not ready at once; refuses new requests with UNAVAILABLE; answers what was accepted; returns
  // when all of it has left or after drain_timeout, when the rest is failed with UNAVAILABLE.
  // Once.
  void Drain();

 private:
  class Impl;
  explicit App(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
