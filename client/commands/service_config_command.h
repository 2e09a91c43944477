// The subcommand `service-config`, which prints the service config for clients in any language.
#pragma once

#include "client/cli/command.h"

namespace attendant::client {

class ServiceConfigCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  bool behind_proxy_ = false;
};

}  // namespace attendant::client
