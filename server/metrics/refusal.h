// Reasons for which the server refuses work that it might do at another time. They travel with the
// status, to the trailer attendant-reason of the call and to the metrics.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// A closed list, which proto/README.md documents.
enum class Refusal {
  kSlots,             // no slot for another request
  kStreams,           // no room for another stream
  kMemory,            // no memory for the request or its answer
  kPeerShare,         // the caller holds its share of what there is
  kQueueJobs,         // too many requests wait, in all or of the model
  kQueueTokens,       // too many tokens
  kQueueSeconds,      // what waits takes too long by prediction
  kDeadlineHopeless,  // by prediction the deadline cannot be met
  kRegistered,        // no room among what is kept between requests
  kDraining,          // the server stops
};

// "slots", "streams", "memory", "peer_share", "queue_jobs", "queue_tokens",
// "queue_seconds", "deadline_hopeless", "registered", "draining".
const char* Name(Refusal reason);

// UNAVAILABLE for kDraining, DEADLINE_EXCEEDED for kDeadlineHopeless, else RESOURCE_EXHAUSTED.
absl::Status Refused(Refusal reason, absl::string_view message);

// The name of the reason of a status that Refused has made; empty for any other.
std::string ReasonOf(const absl::Status& status);

}  // namespace attendant::server
