// EncodeStream, the stream of Encode calls that Client::OpenEncodeStream opens.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/messages.h"

namespace attendant::client {

// Pipelined Encode calls: requests are sent without waiting for answers, which arrive as they
// finish, in any order. One thread may write while another one reads, but no two threads may do
// either at the same time. A caller that writes many requests must read meanwhile, because the
// server stops taking requests while its answers are not read. Destroying a stream before Finish
// cancels it.
class EncodeStream {
 public:
  // The answer to one request, or the error of that request alone, which does not end the stream.
  struct Answer {
    uint64_t id = 0;
    absl::StatusOr<EncodeResult> result;
  };

  virtual ~EncodeStream() = default;

  // Sends a request under an id that the caller chooses. Returns false if the stream is broken;
  // Finish then returns the reason.
  bool Write(uint64_t id, EncodeRequest request) { return Write(id, std::move(request), {}); }
  // As above, for a part of a sequence. The parts of one sequence are computed in the order in
  // which they are written, and answered with the rows that the whole sequence would have there.
  virtual bool Write(uint64_t id, EncodeRequest request, const SequencePart& part) = 0;
  // Tells the server that no more requests follow.
  virtual void WritesDone() = 0;
  // Waits for the next answer. Returns nothing when all answers have been read, after WritesDone,
  // or when the stream is broken.
  virtual std::optional<Answer> Read() = 0;
  // Returns the status of the stream itself, which is OK even if some answers were errors. To be
  // called once, after Read has returned nothing.
  virtual absl::Status Finish() = 0;
};

}  // namespace attendant::client
