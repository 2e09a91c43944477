// The commands of attendant-client that take texts.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace attendant::client {

std::unique_ptr<Command> MakeEmbedCommand();
std::unique_ptr<Command> MakeRerankCommand();
std::unique_ptr<Command> MakeClassifyCommand();
std::unique_ptr<Command> MakeTokenizeCommand();

}  // namespace attendant::client
