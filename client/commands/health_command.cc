#include "client/commands/commands.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

const char* Name(Health health) {
  switch (health) {
    case Health::kServing:
      return "SERVING";
    case Health::kNotServing:
      return "NOT_SERVING";
    case Health::kServiceUnknown:
      return "SERVICE_UNKNOWN";
    case Health::kUnknown:
      break;
  }
  return "UNKNOWN";
}

class HealthCommand : public Command {
 public:
  CommandTable Table() override {
    CommandTable table = {"Server", "health", "Check whether the server is serving",
                          "Calls grpc.health.v1, like Kubernetes and load balancers.",
                          "attendant-client health && echo ready"};
    table.Add("Arguments", {{"SERVICE", "", "A model or a gRPC service",
                             TextKind(service_, "the whole server")}});
    return table;
  }

  ExitCode Run(Session& session) override {
    const absl::StatusOr<Health> health = session.Connect().CheckHealth(service_, session.call);
    if (!health.ok()) return ReportServerError(session, health.status());
    if (session.json) {
      PrintJson(session, {{"service", service_}, {"status", Name(*health)}});
    } else {
      session.out << Name(*health) << "\n";
    }
    return *health == Health::kServing ? kSucceeded : kUnreachable;
  }

 private:
  std::string service_;
};

}  // namespace

std::unique_ptr<Command> MakeHealthCommand() { return std::make_unique<HealthCommand>(); }

}  // namespace attendant::client
