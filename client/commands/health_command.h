// The subcommand `health`, which tells whether the server is serving.
#pragma once

#include <string>

#include "client/cli/command.h"

namespace attendant::client {

class HealthCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string service_;
};

}  // namespace attendant::client
