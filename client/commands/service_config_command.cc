#include "client/commands/service_config_command.h"

#include "client/service_config.h"

namespace attendant::client {

CLI::App* ServiceConfigCommand::AddTo(CLI::App& app) {
  return app.add_subcommand(
      "service-config",
      "Prints the gRPC service config (retries, balancing, health checks) with which clients do "
      "not notice that one of several servers restarts; asks no server");
}

ExitCode ServiceConfigCommand::Run(Session& session) {
  session.out << ServiceConfig();
  return kSucceeded;
}

}  // namespace attendant::client
