// Functions that ask a server for what a report says about it.
#pragma once

#include "client/cli/command.h"
#include "client/load_report/report.h"

namespace attendant::client {

// Returns the facts of a run that begins now. A server without ServerMetadata of the Open Inference
// Protocol does not say its version, which is no error.
RunFacts AskForFacts(const Session& session, const CallOptions& call, const ModelInfo& model);

}  // namespace attendant::client
