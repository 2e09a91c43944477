// EncodeStream, the stream of Encode calls that Client::OpenEncodeStream opens.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/messages.h"

namespace attendant::client {

// Pipelined Encode calls: requests are sent without waiting for responses, which arrive in order of
// completion. One thread may write while another one reads, but two threads must not both write or
// both read. When writing many requests, read at the same time, because the server stops reading
// requests while its responses are not read. Destroying a stream before Finish cancels it.
class EncodeStream {
 public:
  // The response to one request, or the error of that request, which does not end the stream.
  struct Answer {
    uint64_t id = 0;
    absl::StatusOr<EncodeResult> result;
  };

  virtual ~EncodeStream() = default;

  // Sends a request with an id chosen by the caller. Returns false if the stream is broken; Finish
  // then returns the reason.
  bool Write(uint64_t id, EncodeRequest request) { return Write(id, std::move(request), {}); }
  // As above, for a chunk of a sequence. The chunks of a sequence are computed in the order in
  // which they are written; each response contains its rows of the whole sequence.
  virtual bool Write(uint64_t id, EncodeRequest request, const SequencePart& part) = 0;
  // Signals the end of the requests to the server.
  virtual void WritesDone() = 0;
  // Waits for the next response. Returns nullopt after WritesDone when all responses have been
  // read, or if the stream is broken.
  virtual std::optional<Answer> Read() = 0;
  // Returns the status of the stream itself, which is OK even if some requests failed. Call it
  // once, after Read has returned nullopt.
  virtual absl::Status Finish() = 0;
};

}  // namespace attendant::client
