// Checks that the installed client library links and reports an unreachable server.
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"

bool ClientReportsAnUnreachableServer() {
  // Port 9 is the discard service, which nothing provides.
  const auto client = attendant::client::Client::Connect("localhost:9");
  attendant::client::CallOptions call;
  call.timeout = absl::Seconds(5);
  const absl::StatusCode code = client.ListModels(call).status().code();
  return code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded;
}
