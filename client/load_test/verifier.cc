#include "client/load_test/verifier.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace attendant::client {
namespace {

absl::StatusOr<RawAnswer> Fetch(const Client& client, const CallOptions& call,
                                const PreparedRequest& request) {
  absl::StatusOr<RawAnswer> fetched = absl::UnknownError("");
  absl::Notification done;
  client.FetchAsync(request, call, [&](absl::StatusOr<RawAnswer> answer) {
    fetched = std::move(answer);
    done.Notify();
  });
  done.WaitForNotification();
  return fetched;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Verifier>> Verifier::Make(const Client& client,
                                                         const CallOptions& call,
                                                         const Workload& workload) {
  std::unique_ptr<Verifier> verifier(new Verifier);
  for (size_t i = 0; i < workload.size(); ++i) {
    absl::StatusOr<RawAnswer> answer =
        Fetch(client, call, workload.item(static_cast<int64_t>(i)).request);
    if (!answer.ok()) return answer.status();
    verifier->expected_.push_back(std::move(answer->content));
  }
  return verifier;
}

absl::StatusOr<Execution> Verifier::Check(int64_t index, const absl::StatusOr<RawAnswer>& answer) {
  if (!answer.ok()) return answer.status();
  if (answer->content == expected_[static_cast<size_t>(index) % expected_.size()]) {
    return answer->execution;
  }
  ++mismatches_;
  return absl::DataLossError(
      "the response differs from the response to the same request by itself");
}

}  // namespace attendant::client
