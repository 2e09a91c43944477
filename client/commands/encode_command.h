// The subcommand `encode`, which computes a span of whole encoder layers.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/answer_output.h"
#include "client/cli/command.h"
#include "client/cli/input_options.h"

namespace attendant::client {

class EncodeCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  size_t TensorsAskedFor() const;
  absl::StatusOr<EncodeRequest> MakeRequest(RequestInput input) const;

  EncodeRequest request_;
  std::string layers_;
  std::string truncate_;
  std::string pooled_;
  std::string output_dtype_;
  int64_t chunk_ = 0;  // tokens per part; 0: sequences are sent whole
  InputOptions input_;
  AnswerOutput output_;
};

}  // namespace attendant::client
