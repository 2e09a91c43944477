// Queries the server for the facts in a report.
#pragma once

#include "client/cli/command.h"
#include "client/load_report/report.h"

namespace attendant::client {

// Returns the facts of a run that starts now. Without ServerMetadata of the Open Inference
// Protocol, the server's version is unknown, which is not an error.
RunFacts AskForFacts(const Session& session, const CallOptions& call, const ModelInfo& model);

}  // namespace attendant::client
