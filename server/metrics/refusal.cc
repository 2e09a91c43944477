#include "server/metrics/refusal.h"

#include "absl/strings/cord.h"
#include "engine/base/names.h"

namespace attendant::server {
namespace {

constexpr char kPayload[] = "attendant-reason";

constexpr Named<Refusal> kNames[] = {{"slots", Refusal::kSlots},
                                     {"streams", Refusal::kStreams},
                                     {"memory", Refusal::kMemory},
                                     {"peer_share", Refusal::kPeerShare},
                                     {"queue_jobs", Refusal::kQueueJobs},
                                     {"queue_tokens", Refusal::kQueueTokens},
                                     {"queue_seconds", Refusal::kQueueSeconds},
                                     {"deadline_hopeless", Refusal::kDeadlineHopeless},
                                     {"registered", Refusal::kRegistered},
                                     {"draining", Refusal::kDraining}};

absl::StatusCode CodeOf(Refusal reason) {
  if (reason == Refusal::kDraining) return absl::StatusCode::kUnavailable;
  if (reason == Refusal::kDeadlineHopeless) return absl::StatusCode::kDeadlineExceeded;
  return absl::StatusCode::kResourceExhausted;
}

}  // namespace

const char* Name(Refusal reason) { return NameIn(kNames, reason); }

absl::Status Refused(Refusal reason, absl::string_view message) {
  absl::Status status(CodeOf(reason), message);
  status.SetPayload(kPayload, absl::Cord(Name(reason)));
  return status;
}

absl::Status RefusedFull(Refusal reason, absl::string_view resource, const absl::AlphaNum& used,
                         const absl::AlphaNum& limit, absl::string_view unit,
                         absl::string_view need) {
  return Refused(reason, absl::StrCat("the ", resource, " is full (", used, " of ", limit, " ",
                                      unit, "); ", need, "; retry later"));
}

absl::Status DrainingError() {
  return Refused(Refusal::kDraining, "the server is draining; retry on another server");
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace attendant::server
