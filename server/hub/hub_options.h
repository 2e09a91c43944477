// HubOptions: the Hugging Face Hub and its cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::server {

struct HubOptions {
  std::string endpoint = "https://huggingface.co";  // without a trailing slash
  std::string token;                                // sent only to the endpoint; or empty
  std::string cache;                                // the directory of models--ORG--REPO
  std::string ca_file;  // PEM file of certificate authorities; empty: the system's
  std::string user_agent = "attendant";
  bool offline = false;  // use the cache without connecting
  // Use a complete snapshot in the cache if the Hub cannot be reached or refuses access.
  bool falls_back_to_cache = true;
  int64_t max_weight_bytes = int64_t{64} << 30;  // of all weight files together

  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration stall_timeout = absl::Seconds(30);  // without receiving a byte; whole seconds
  absl::Duration api_timeout = absl::Minutes(1);     // for responses other than files
  // Before the first retry; doubles afterwards.
  absl::Duration retry_delay = absl::Milliseconds(250);
};

// Returns the value of an environment variable; empty if unset.
using Variables = std::function<std::string(const char* name)>;

// Returns the options given by the variables of the Hub's own library: HF_ENDPOINT; HF_TOKEN, or
// the file that `hf auth login` writes; HF_HUB_CACHE, HF_HOME or XDG_CACHE_HOME; HF_HUB_OFFLINE;
// and SSL_CERT_FILE. `cache` and `offline`, if set, override variables. Returns INVALID_ARGUMENT if
// one is invalid, or if there is no home directory for the cache.
absl::StatusOr<HubOptions> ReadHubOptions(const Variables& variables, const std::string& cache,
                                          bool offline);

}  // namespace attendant::server
