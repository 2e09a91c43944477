#include "client/commands/service_config_command.h"

#include "client/service_config.h"

namespace attendant::client {

CLI::App* ServiceConfigCommand::AddTo(CLI::App& app) {
  CLI::App* service_config = app.add_subcommand(
      "service-config",
      "Prints the gRPC service config (retries, balancing, health checks) with which clients do "
      "not notice that one of several servers restarts; asks no server");
  service_config->add_flag("--behind-proxy", behind_proxy_,
                           "For clients of a proxy, which does the health checks itself");
  return service_config;
}

ExitCode ServiceConfigCommand::Run(Session& session) {
  session.out << ServiceConfig(behind_proxy_ ? HealthChecks::kOfProxy : HealthChecks::kOfClient);
  return kSucceeded;
}

}  // namespace attendant::client
