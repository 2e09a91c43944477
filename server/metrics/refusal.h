// Reasons for refusing work that the server might accept at another time. A status carries its
// reason to the call's trailer attendant-reason and to the metrics.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// A closed list, documented in proto/README.md.
enum class Refusal {
  kSlots,             // no slot for another request
  kStreams,           // no slot for another stream
  kMemory,            // no memory for the request or its response
  kPeerShare,         // the client already holds its share
  kQueueJobs,         // too many waiting requests, in total or for the model
  kQueueTokens,       // too many waiting tokens
  kQueueSeconds,      // the predicted time of waiting work is too long
  kDeadlineHopeless,  // the deadline cannot be met by prediction
  kRegistered,        // no space for data kept between requests
  kDraining,          // the server is stopping
};

// Returns "slots", "streams", "memory", "peer_share", "queue_jobs", "queue_tokens",
// "queue_seconds", "deadline_hopeless", "registered", "draining".
const char* Name(Refusal reason);

// Returns UNAVAILABLE for kDraining, DEADLINE_EXCEEDED for kDeadlineHopeless, otherwise
// RESOURCE_EXHAUSTED.
absl::Status Refused(Refusal reason, absl::string_view message);

// RESOURCE_EXHAUSTED "the <resource> is full (<used> of <limit> <unit>); <need>; retry later".
// `unit` ends with the flag of the limit: "bytes, --max-registered-bytes".
absl::Status RefusedFull(Refusal reason, absl::string_view resource, const absl::AlphaNum& used,
                         const absl::AlphaNum& limit, absl::string_view unit,
                         absl::string_view need);

// UNAVAILABLE "the server is draining; retry on another server".
absl::Status DrainingError();

// Returns the name of the reason of a status made by Refused; empty for other statuses.
std::string ReasonOf(const absl::Status& status);

}  // namespace attendant::server
