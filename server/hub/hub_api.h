// HubApi, the Hub's API for one repository.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/hub/http_client.h"
#include "server/hub/hub_json.h"
#include "server/hub/hub_options.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {

// Converts the Hub's refusals into errors that say what to do: UNAUTHENTICATED, PERMISSION_DENIED,
// NOT_FOUND, or UNAVAILABLE if a retry may help. Not thread-safe.
class HubApi {
 public:
  HubApi(const HubOptions& options, const HubReference& reference);

  // Returns the commit of the revision and its files.
  absl::StatusOr<HubListing> List();
  // Fills in the size and digest of a file that the Hub, such as a mirror, has listed without them.
  absl::Status Complete(const std::string& commit, const std::string& path, HubFile& file);
  // Downloads a file from byte `from` into `sink`.
  absl::Status Download(const std::string& commit, const std::string& path, int64_t from,
                        const HttpSink& sink);

 private:
  std::string FileUrl(const std::string& commit, const std::string& path) const;
  absl::Status Check(const absl::StatusOr<HttpResponse>& response) const;

  const HubOptions options_;
  const HubReference reference_;
  HttpClient http_;
};

}  // namespace attendant::server
