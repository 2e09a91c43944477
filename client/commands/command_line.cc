#include "client/commands/command_line.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/connection_options.h"
#include "client/commands/attend_command.h"
#include "client/commands/encode_command.h"
#include "client/commands/explain_command.h"
#include "client/commands/health_command.h"
#include "client/commands/inspect_command.h"
#include "client/commands/load/load_report_command.h"
#include "client/commands/load/load_test_command.h"
#include "client/commands/memory_commands.h"
#include "client/commands/models_command.h"
#include "client/commands/service_config_command.h"
#include "client/commands/tokenizer_command.h"

namespace attendant::client {
namespace {

constexpr char kExitCodes[] =
    "Exit codes:\n"
    "  0  it worked; health: the server serves\n"
    "  1  the server refused the request or answered an error\n"
    "  2  bad usage, or a file that cannot be read or written\n"
    "  3  the server cannot be reached, or does not serve (yet, or any more)\n"
    "  4  the load test finished, but with errors, beyond --require, or without a rate for "
    "--find-rate";

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<AttendCommand>());
  commands.push_back(std::make_unique<EncodeCommand>());
  commands.push_back(std::make_unique<PutMemoryCommand>());
  commands.push_back(std::make_unique<DropMemoryCommand>());
  commands.push_back(std::make_unique<InspectCommand>());
  commands.push_back(std::make_unique<ExplainCommand>());
  commands.push_back(std::make_unique<ModelsCommand>());
  commands.push_back(std::make_unique<TokenizerCommand>());
  commands.push_back(std::make_unique<HealthCommand>());
  commands.push_back(std::make_unique<LoadTestCommand>());
  commands.push_back(std::make_unique<LoadReportCommand>());
  commands.push_back(std::make_unique<ServiceConfigCommand>());
  return commands;
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Session session{.address = "localhost:8001",
                  .call = {.timeout = absl::Seconds(60)},
                  .json = false,
                  .out = out,
                  .err = err};
  session.command_line.assign(argv, argv + argc);
  CLI::App app("Talks to an attendant-server.", "attendant-client");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.fallthrough();  // lets the options below follow the subcommand
  app.add_option("--address", session.address, "The server's gRPC port")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  ConnectionOptions connection;
  connection.AddTo(app);
  app.add_flag("--json", session.json, "Print one JSON document on stdout");
  AddDuration(
      app, "--deadline", session.call.timeout,
      "Give up a call after this long; the server knows it too, as the call's gRPC deadline");

  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> subcommands;
  for (std::unique_ptr<Command>& command : MakeCommands()) {
    CLI::App* subcommand = command->AddTo(app);
    subcommand->footer(kExitCodes);
    subcommands.emplace_back(subcommand, std::move(command));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kSucceeded : kBadUsage;
  }
  absl::StatusOr<ClientOptions> options = connection.Read();
  if (!options.ok()) return ReportBadUsage(session, options.status());
  session.connection = *std::move(options);
  for (const auto& [subcommand, command] : subcommands) {
    if (subcommand->parsed()) return command->Run(session);
  }
  return kBadUsage;
}

}  // namespace attendant::client
