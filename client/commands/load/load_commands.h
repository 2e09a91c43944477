// The commands of attendant-client for load tests.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace attendant::client {

std::unique_ptr<Command> MakeLoadTestCommand();
std::unique_ptr<Command> MakeLoadReportCommand();

}  // namespace attendant::client
