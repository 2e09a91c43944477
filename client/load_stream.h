// LoadStream, the stream that Client::OpenLoadStream opens for load generators.
#pragma once

#include "client/call.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

// Client::SendAsync for Encode requests, over one EncodeStream. Thread-safe. The first request
// opens the stream, and if it breaks, the next request opens another one. A request that is not
// answered within the timeout fails with DEADLINE_EXCEEDED; the server goes on computing it,
// because it knows deadlines only of whole streams. The destructor waits until every request has
// been answered or has failed.
class LoadStream {
 public:
  virtual ~LoadStream() = default;

  // Sends a request, which must have been made by PreparedRequest::Encode, and returns at once.
  // `done` runs exactly once, on a thread of gRPC, and must not block. If the stream breaks, it
  // gets the status of the stream.
  virtual void SendAsync(const PreparedRequest& request, Callback<Execution> done) = 0;
};

}  // namespace attendant::client
