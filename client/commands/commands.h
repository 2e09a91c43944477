// The commands of attendant-client, except for the load test commands in client/commands/load.
#pragma once

#include <memory>

#include "client/cli/command.h"
#include "client/flags/flag.h"

namespace attendant::client {

std::unique_ptr<Command> MakeAttendCommand();
std::unique_ptr<Command> MakeEncodeCommand();
std::unique_ptr<Command> MakePutMemoryCommand();
std::unique_ptr<Command> MakeDropMemoryCommand();
std::unique_ptr<Command> MakeInspectCommand();
std::unique_ptr<Command> MakeExplainCommand();
std::unique_ptr<Command> MakeModelsCommand();
std::unique_ptr<Command> MakeTokenizerCommand();
std::unique_ptr<Command> MakeHealthCommand();
std::unique_ptr<Command> MakeServiceConfigCommand();

// Prints the completion of `program`, which must have all commands when it runs, and outlive it.
std::unique_ptr<Command> MakeCompletionCommand(const ProgramTable& program);

}  // namespace attendant::client
