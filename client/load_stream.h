// LoadStream, the stream that Client::OpenLoadStream opens for load generators.
#pragma once

#include "client/call.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

// Client::SendAsync for Encode requests, over one EncodeStream. Thread-safe. The first request
// opens the stream, and if it breaks, the next request opens another one. A request without a
// response within the timeout fails with DEADLINE_EXCEEDED; the server still computes it, because
// gRPC deadlines apply to whole streams. The destructor waits until every request has completed.
class LoadStream {
 public:
  virtual ~LoadStream() = default;

  // Sends a request made by PreparedRequest::Encode and returns at once. `done` runs exactly once,
  // on a gRPC thread, and must not block. If the stream breaks, `done` receives its status.
  virtual void SendAsync(const PreparedRequest& request, Callback<Execution> done) = 0;
};

}  // namespace attendant::client
