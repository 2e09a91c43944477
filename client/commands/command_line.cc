#include "client/commands/command_line.h"

#include <grpcpp/version_info.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/address.h"
#include "client/cli/command.h"
#include "client/cli/connection_options.h"
#include "client/commands/commands.h"
#include "client/commands/load/load_commands.h"
#include "client/commands/text/text_commands.h"
#include "client/flags/flag_kinds.h"
#include "client/flags/help.h"
#include "client/flags/parse_arguments.h"
#include "client/flags/read_arguments.h"

namespace attendant::client {
namespace {

constexpr char kVersion[] =
    "attendant-client " ATTENDANT_VERSION "\ngRPC " GRPC_CPP_VERSION_STRING "\n";

// In the order of the help.
std::vector<std::unique_ptr<Command>> MakeCommands(const ProgramTable& program) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeEmbedCommand());
  commands.push_back(MakeRerankCommand());
  commands.push_back(MakeClassifyCommand());
  commands.push_back(MakeTokenizeCommand());
  commands.push_back(MakeAttendCommand());
  commands.push_back(MakeEncodeCommand());
  commands.push_back(MakePutMemoryCommand());
  commands.push_back(MakeDropMemoryCommand());
  commands.push_back(MakeInspectCommand());
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeModelsCommand());
  commands.push_back(MakeTokenizerCommand());
  commands.push_back(MakeHealthCommand());
  commands.push_back(MakeServiceConfigCommand());
  commands.push_back(MakeLoadTestCommand());
  commands.push_back(MakeLoadReportCommand());
  commands.push_back(MakeCompletionCommand(program));
  return commands;
}

// A switch that chooses another action than a command.
Flag ActionFlag(const char* name, const char* help) {
  FlagKind kind = {.takes = FlagKind::Takes::kNothing};
  kind.read = [](const std::string&) { return true; };
  return {name, "", help, std::move(kind)};
}

Flags CommonFlags(Session& session, ConnectionOptions& connection) {
  Flags flags;
  Append("Output", {{"--json", "", "Print one JSON document on stdout", SwitchKind(session.json)}},
         flags);
  Append(
      "Connection",
      {{"--address", "HOST:PORT|unix:PATH", "gRPC port of the server", TextKind(session.address)},
       {"--deadline", "DURATION",
        "Time limit of each call, also sent to the server as its gRPC deadline",
        DurationKind(session.call.timeout)}},
      flags);
  Append("Connection", connection.ConnectionFlags(), flags);
  Append("Help",
         {ActionFlag("--help", "Print this help and exit"),
          ActionFlag("--version", "Print the versions of the client and gRPC and exit")},
         flags);
  return flags;
}

int Run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Session session{.address = "localhost:8001",
                  .call = {.timeout = absl::Seconds(60)},
                  .json = false,
                  .out = out,
                  .err = err};
  session.command_line.assign(argv, argv + argc);
  ConnectionOptions connection;
  ProgramTable program = {.common = CommonFlags(session, connection), .commands = {}};
  const std::vector<std::unique_ptr<Command>> commands = MakeCommands(program);
  for (const auto& command : commands) program.commands.push_back(command->Table());

  const ParsedArguments parsed =
      ParseArguments(program, std::vector<std::string>(argv + 1, argv + argc));
  if (parsed.texts.count("--help") > 0) {
    const size_t columns = HelpColumns(STDOUT_FILENO);
    out << (parsed.command == nullptr ? ProgramHelp(program, columns)
                                      : CommandHelp(program, *parsed.command, columns));
    return kSucceeded;
  }
  if (parsed.texts.count("--version") > 0) {
    out << kVersion;
    return kSucceeded;
  }
  const absl::Status read = ReadArguments(program, parsed);
  if (!read.ok()) return ReportBadUsage(session, read);
  absl::StatusOr<ClientOptions> options = connection.Read();
  if (!options.ok()) return ReportBadUsage(session, options.status());
  const absl::Status address = ReadAddress(session.address).status();
  if (!address.ok()) return ReportBadUsage(session, address);
  session.connection = *std::move(options);
  return commands[parsed.command - program.commands.data()]->Run(session);
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const int exit_code = Run(argc, argv, out, err);
  if (out.flush()) return exit_code;
  err << "attendant-client: stdout: cannot be written\n";
  return exit_code == kSucceeded ? kBadUsage : exit_code;
}

}  // namespace attendant::client
