// The stream that Client::OpenLoadStream opens for load generators.
#pragma once

#include "client/call.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

// What SendAsync is to Encode, over one stream. Thread-safe. Opened by the first request; when it
// has broken, opened anew by the next one. A request without an answer in time fails with
// DEADLINE_EXCEEDED; the server, which knows deadlines of streams alone, goes on with it.
// Destroying it waits until all is answered or has failed.
class LoadStream {
 public:
  virtual ~LoadStream() = default;

  // `request` is of Encode. Returns at once; `done` runs once, on a thread of gRPC's, and must not
  // block. If the stream breaks, with its status.
  virtual void SendAsync(const PreparedRequest& request, Callback<Execution> done) = 0;
};

}  // namespace attendant::client
