// The subcommand `load-test`, which sends requests for a while and measures.
#pragma once

#include "client/cli/command.h"
#include "client/commands/load/loop_flags.h"
#include "client/commands/load/request_flags.h"
#include "client/commands/load/result_flags.h"
#include "client/commands/load/step_runner.h"
#include "client/load_report/report.h"
#include "client/load_report/server_metrics.h"

namespace attendant::client {

class LoadTestCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  absl::Status ReadFlags();
  // Opens the connections and returns the function that sends over them.
  decltype(LoadContext::send) Open(const Session& session, Verifier* verifier) const;
  absl::StatusOr<MetricsSample> FetchServerMetrics(const Session& session) const;
  void Measure(StepRunner& runner, LoadReport& report) const;
  void Search(StepRunner& runner, LoadReport& report) const;
  ExitCode Emit(Session& session, const LoadReport& report) const;
  bool Succeeded(const LoadReport& report) const;

  LoopFlags loop_flags_;
  RequestFlags requests_;
  ResultFlags results_;
  LoopOptions loop_;  // what ReadFlags makes of loop_flags_
};

}  // namespace attendant::client
