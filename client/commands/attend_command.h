// The subcommand `attend`, which computes the attention of one layer.
#pragma once

#include <string>

#include "client/cli/answer_output.h"
#include "client/cli/command.h"
#include "client/cli/input_options.h"
#include "client/cli/memory_options.h"

namespace attendant::client {

class AttendCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  size_t TensorsAskedFor() const;

  AttendRequest request_;
  std::string output_dtype_;
  InputOptions input_;
  MemoryOptions memory_;
  AnswerOutput output_;
};

}  // namespace attendant::client
