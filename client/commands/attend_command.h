// attendant-client attend: attention of one layer.
#pragma once

#include <string>

#include "client/commands/answer_output.h"
#include "client/commands/command.h"
#include "client/commands/input_options.h"
#include "client/commands/memory_options.h"

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
