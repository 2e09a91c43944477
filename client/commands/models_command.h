// The subcommand `models`, which lists or describes the models of the server.
#pragma once

#include <string>

#include "client/cli/command.h"

namespace attendant::client {

class ModelsCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string name_;
  bool names_only_ = false;
};

}  // namespace attendant::client
