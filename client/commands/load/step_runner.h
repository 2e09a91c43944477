// StepRunner, which measures steps of a load test against a server.
#pragma once

#include <optional>

#include "client/cli/command.h"
#include "client/commands/load/loop_flags.h"
#include "client/load_requests/workload.h"
#include "client/load_test/interrupt.h"
#include "client/load_test/load_generator.h"
#include "client/load_test/step_result.h"
#include "client/load_test/verifier.h"

namespace attendant::client {

// Returns the function that sends over connections of its own: by unary calls, or over one stream
// per connection.
decltype(LoadContext::send) OpenCalls(const Session& session, int connections);
decltype(LoadContext::send) OpenStreams(const Session& session, int connections);
// Returns the function that sends unary calls, whose answers `verifier` then checks.
decltype(LoadContext::send) OpenVerifiedCalls(const Session& session, int connections,
                                              Verifier& verifier);

// Not thread-safe. What it is made with must outlive it.
class StepRunner {
 public:
  struct Options {
    decltype(LoadContext::send) send;
    RequestLog* log = nullptr;     // null: none
    Verifier* verifier = nullptr;  // whose mismatches are counted; null: none
    bool progress = false;         // prints a line per second on stderr; a terminal gets it anyway
  };
  StepRunner(const Session& session, const LoopOptions& loop, const Workload& workload,
             Options options);

  // Returns when all requests of the step have been answered. The first Ctrl-C ends the sending.
  StepResult Run(const LoadStep& step);

  // Returns whether there has been a Ctrl-C.
  bool interrupted() const { return watch_.interrupted(); }

 private:
  const Session& session_;
  const LoopOptions& loop_;
  const Workload& workload_;
  const Options options_;
  int steps_ = 0;
  const InterruptWatch watch_;
};

}  // namespace attendant::client
