// The subcommand `tokenizer`, which shows or saves what turns text into token ids for a model.
#pragma once

#include <string>

#include "client/cli/command.h"

namespace attendant::client {

class TokenizerCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string name_;
  std::string output_;
};

}  // namespace attendant::client
