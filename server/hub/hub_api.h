// HubApi, the requests of the Hub for one repository.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/hub/http_client.h"
#include "server/hub/hub_json.h"
#include "server/hub/hub_options.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {

// Refusals of the Hub become errors that say what to do: UNAUTHENTICATED, PERMISSION_DENIED,
// NOT_FOUND, or UNAVAILABLE if another try may help. Not thread-safe.
class HubApi {
 public:
  HubApi(const HubOptions& options, const HubReference& reference);

  // Returns the commit of the revision and its files.
  absl::StatusOr<HubListing> List();
  // Fills in the size and the digest of a file that the Hub has listed without them, as mirrors do.
  absl::Status Complete(const std::string& commit, const std::string& path, HubFile& file);
  // Downloads a file from byte `from` on into `sink`.
  absl::Status Download(const std::string& commit, const std::string& path, int64_t from,
                        HttpSink& sink);

 private:
  std::string FileUrl(const std::string& commit, const std::string& path) const;
  absl::Status Check(const absl::StatusOr<HttpResponse>& response) const;

  const HubOptions options_;
  const HubReference reference_;
  HttpClient http_;
};

}  // namespace attendant::server
