#include "server/security/server_secrets.h"

#include "server/metrics/server_metrics.h"

namespace attendant::server {

absl::Status ServerSecrets::CheckToken(absl::string_view authorization, TokenScope scope) const {
  if (tokens == nullptr) return absl::OkStatus();
  const absl::Status status = tokens->current()->Check(authorization, scope);
  if (!status.ok() && metrics != nullptr) metrics->RecordRefusedToken(Name(scope), status.code());
  return status;
}

std::string ServerSecrets::NameOfToken(absl::string_view authorization) const {
  return tokens == nullptr ? "" : tokens->current()->NameOf(authorization);
}

}  // namespace attendant::server
