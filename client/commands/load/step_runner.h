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

// Returns a function that sends over its own connections: unary calls, or one stream per
// connection.
decltype(LoadContext::send) OpenCalls(const Session& session, int connections);
decltype(LoadContext::send) OpenStreams(const Session& session, int connections);
// Returns a function that sends unary calls and checks the responses with `verifier`.
decltype(LoadContext::send) OpenVerifiedCalls(const Session& session, int connections,
                                              Verifier& verifier);

// Not thread-safe. The constructor's arguments must outlive it.
class StepRunner {
 public:
  struct Options {
    decltype(LoadContext::send) send;
    RequestLog* log = nullptr;     // optional
    Verifier* verifier = nullptr;  // optional; its mismatches are counted
    bool progress = false;         // prints a line per second on stderr; a terminal gets it anyway
  };
  StepRunner(const Session& session, const LoopOptions& loop, const Workload& workload,
             Options options);

  // Returns when all requests of the step have completed. The first Ctrl-C stops sending.
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
