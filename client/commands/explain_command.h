// The subcommand `explain`, which shows the steps from attention probabilities to the context, as
// on paper.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/command.h"
#include "client/cli/input_options.h"

namespace attendant::client {

class ExplainCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string model_;
  uint32_t layer_ = 0;
  int digits_ = -1;  // decimals of the rounded probabilities; -1: not rounded
  InputOptions input_;
};

}  // namespace attendant::client
