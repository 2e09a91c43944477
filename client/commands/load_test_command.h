// The subcommand `load-test`, which sends requests for a while and measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/load_test/length_distribution.h"
#include "client/load_test/load_generator.h"
#include "client/load_test/report.h"
#include "client/load_test/workload.h"

namespace attendant::client {

class LoadTestCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App& app) override;
  ExitCode Run(Session& session) override;

 private:
  void AddLoadTo(CLI::App& load_test);
  void AddRequestsTo(CLI::App& load_test);
  LoadPlan MakePlan() const;
  // Each opens the connections and returns the function that sends through them: by unary calls, or
  // over one stream per connection.
  using Send = decltype(LoadContext::send);
  Send OpenCalls(const Session& session) const;
  Send OpenStreams(const Session& session) const;
  LoadReport Measure(Session& session, const Workload& workload);
  std::vector<std::pair<std::string, std::string>> DescribePlan(const ModelInfo& model,
                                                                const Workload& workload) const;
  ExitCode Emit(Session& session, const LoadReport& report) const;

  int concurrency_ = 4;
  double rate_ = 0;  // 0: closed loop
  std::string arrival_ = "constant";
  absl::Duration warmup_ = absl::Seconds(1);
  absl::Duration duration_ = absl::Seconds(10);
  int64_t requests_ = 0;  // 0: limited by the duration only
  bool duration_given_ = false;
  int connections_ = 1;
  absl::Duration max_p99_ = absl::InfiniteDuration();
  bool progress_ = false;

  std::string method_ = "encode";
  bool stream_ = false;
  std::string lengths_ = "128";
  std::string wire_dtype_;
  WorkloadOptions workload_;
};

}  // namespace attendant::client
