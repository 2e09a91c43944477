#include "client/service_config.h"

#include "absl/strings/str_cat.h"

namespace attendant::client {

// A channel stops retrying calls while more than half of the tokens are used up: then no server
// is there, rather than one of them missing.
std::string ServiceConfig(HealthChecks checks) {
  const char* const health_checks =
      checks == HealthChecks::kOfClient
          ? R"("healthCheckConfig": {"serviceName": "attendant.v1.EncoderService"},
  )"
          : "";
  return absl::StrCat(R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  )",
                      health_checks, R"("methodConfig": [
    {
      "name": [
        {"service": "attendant.v1.EncoderService", "method": "Attend"},
        {"service": "attendant.v1.EncoderService", "method": "Encode"},
        {"service": "attendant.v1.EncoderService", "method": "Tokenize"},
        {"service": "attendant.v1.EncoderService", "method": "ListModels"},
        {"service": "attendant.v1.EncoderService", "method": "GetModel"},
        {"service": "attendant.v1.EncoderService", "method": "GetTokenizer"}
      ],
      "retryPolicy": {
        "maxAttempts": 5,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"]
      }
    }
  ],
  "retryThrottling": {"maxTokens": 1000, "tokenRatio": 1}
}
)");
}

}  // namespace attendant::client
