// The subcommand `inspect`, which shows what the attention of a model does with an input.
#pragma once

#include <string>

#include "client/cli/command.h"
#include "client/cli/input_options.h"
#include "client/inspect/inspection.h"

namespace attendant::client {

class InspectCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  absl::StatusOr<LayerSpan> ChooseLayers(const ModelInfo& model) const;
  absl::Status NameTokens(Inspector& inspector) const;
  // Sends `request` for as many layers at a time as fit into one answer, until it has all of them.
  absl::Status AskForLayers(const Session& session, const LayerSpan& layers,
                            const EncodeRequest& request, const ModelInfo& model,
                            Inspector& inspector) const;
  ExitCode Emit(Session& session, const Inspection& inspection) const;

  EncodeRequest request_;  // only its model and gates are set
  std::string layers_;
  std::string html_;
  std::string tokens_;
  std::string tokens_file_;
  int64_t cells_ = 128;
  InputOptions input_;
};

}  // namespace attendant::client
