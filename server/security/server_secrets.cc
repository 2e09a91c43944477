#include "server/security/server_secrets.h"

#include "server/metrics/server_metrics.h"

namespace attendant::server {

absl::StatusOr<std::string> ServerSecrets::Identify(absl::string_view authorization,
                                                    TokenScope scope) const {
  if (tokens == nullptr) return "";
  absl::StatusOr<std::string> name = tokens->current()->Identify(authorization, scope);
  if (!name.ok() && metrics != nullptr) {
    metrics->RecordRefusedToken(Name(scope), name.status().code());
  }
  return name;
}

}  // namespace attendant::server
