#include "server/metrics/refusal.h"

#include "absl/strings/cord.h"

namespace attendant::server {
namespace {

constexpr char kPayload[] = "attendant-reason";

absl::StatusCode CodeOf(Refusal reason) {
  if (reason == Refusal::kDraining) return absl::StatusCode::kUnavailable;
  if (reason == Refusal::kDeadlineHopeless) return absl::StatusCode::kDeadlineExceeded;
  return absl::StatusCode::kResourceExhausted;
}

}  // namespace

const char* Name(Refusal reason) {
  switch (reason) {
    case Refusal::kSlots:
      return "slots";
    case Refusal::kStreams:
      return "streams";
    case Refusal::kMemory:
      return "memory";
    case Refusal::kPeerShare:
      return "peer_share";
    case Refusal::kQueueJobs:
      return "queue_jobs";
    case Refusal::kQueueTokens:
      return "queue_tokens";
    case Refusal::kQueueSeconds:
      return "queue_seconds";
    case Refusal::kDeadlineHopeless:
      return "deadline_hopeless";
    case Refusal::kRegistered:
      return "registered";
    case Refusal::kDraining:
      return "draining";
  }
  return "";
}

absl::Status Refused(Refusal reason, absl::string_view message) {
  absl::Status status(CodeOf(reason), message);
  status.SetPayload(kPayload, absl::Cord(Name(reason)));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace attendant::server
