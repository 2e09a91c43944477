// The subcommands `put-memory` and `drop-memory`, for the memories that the server keeps.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/memory_options.h"

namespace attendant::client {

class PutMemoryCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string model_;
  uint32_t layer_ = 0;
  Layout layout_ = Layout::kBatchFirst;
  absl::Duration time_to_live_;
  std::string request_id_;
  MemoryOptions memory_;
};

class DropMemoryCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  std::string handle_;
};

}  // namespace attendant::client
