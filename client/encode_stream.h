// The stream of Encode calls that Client::OpenEncodeStream opens.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/messages.h"

namespace attendant::client {

// Encode, pipelined: requests go out without waiting for answers, which come as they finish, in any
// order. One thread may write while another reads; no more than one of each at a time. Who writes
// many requests has to read meanwhile, since the server stops taking requests while nobody takes
// its answers. Destroying an unfinished stream cancels it.
class EncodeStream {
 public:
  struct Answer {
    uint64_t id = 0;
    absl::StatusOr<EncodeResult> result;
  };

  virtual ~EncodeStream() = default;

  // Sends a request under an id of the caller's choosing. False if the stream has broken: Finish
  // says why.
  bool Write(uint64_t id, EncodeRequest request) { return Write(id, std::move(request), {}); }
  // Sends a part of a sequence likewise: parts of one sequence are computed in the order in which
  // they are written, and answered as the rows of the whole sequence would be.
  virtual bool Write(uint64_t id, EncodeRequest request, const SequencePart& part) = 0;
  // No more requests.
  virtual void WritesDone() = 0;
  // Waits for the next answer. Nothing once all are in (after WritesDone) or the stream has broken.
  virtual std::optional<Answer> Read() = 0;
  // The stream's own end, after Read returned nothing. OK even if answers were errors.
  virtual absl::Status Finish() = 0;
};

}  // namespace attendant::client
