// The subcommand `load-report`, which shows saved reports of load-test, and compares two.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace attendant::client {

class LoadReportCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::vector<std::string> files_;
  std::string html_;
};

}  // namespace attendant::client
