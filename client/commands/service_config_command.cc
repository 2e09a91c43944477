#include "client/commands/commands.h"
#include "client/flags/flag_kinds.h"
#include "client/service_config.h"

namespace attendant::client {
namespace {

class ServiceConfigCommand : public Command {
 public:
  CommandTable Table() override {
    CommandTable table = {
        "Server", "service-config", "Print the gRPC service config for clients of several servers",
        "With its retries, balancing and health checks, clients in any language "
        "keep working while one of several servers restarts. Does not call a server.",
        "attendant-client service-config > service_config.json"};
    table.Add("Balancing", {{"--behind-proxy", "",
                             "Omit health checks, for clients of a proxy that checks its servers",
                             SetKind(checks_, HealthChecks::kOfProxy)}});
    return table;
  }

  ExitCode Run(Session& session) override {
    session.out << ServiceConfig(checks_);
    return kSucceeded;
  }

 private:
  HealthChecks checks_ = HealthChecks::kOfClient;
};

}  // namespace

std::unique_ptr<Command> MakeServiceConfigCommand() {
  return std::make_unique<ServiceConfigCommand>();
}

}  // namespace attendant::client
