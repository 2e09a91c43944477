#include "server/hub/hub_options.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"

namespace attendant::server {
namespace {

constexpr int64_t kMostTokenBytes = 4096;

bool IsTrue(const std::string& value) {
  const std::string upper = absl::AsciiStrToUpper(value);
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

bool IsGraphic(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isgraph(c); });
}

// Returns the value of the first of the variables that is set.
std::string FirstOf(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = variables(name); !value.empty()) return value;
  }
  return "";
}

// Returns `path` with the home folder in place of a "~" at its beginning.
std::string ExpandHome(const std::string& path, const Variables& variables) {
  if (path != "~" && !absl::StartsWith(path, "~/")) return path;
  return absl::StrCat(variables("HOME"), path.substr(1));
}

// Returns the folder of everything that the Hub's library keeps; empty if there is none.
std::string HomeOfHub(const Variables& variables) {
  if (const std::string home = variables("HF_HOME"); !home.empty()) {
    return ExpandHome(home, variables);
  }
  if (const std::string caches = variables("XDG_CACHE_HOME"); !caches.empty()) {
    return absl::StrCat(ExpandHome(caches, variables), "/huggingface");
  }
  const std::string home = variables("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.cache/huggingface");
}

absl::StatusOr<std::string> ReadEndpoint(const Variables& variables) {
  const std::string value = variables("HF_ENDPOINT");
  if (value.empty()) return HubOptions().endpoint;
  absl::string_view endpoint = value;
  while (absl::ConsumeSuffix(&endpoint, "/")) {
  }
  absl::string_view place = endpoint;
  const bool has_scheme =
      absl::ConsumePrefix(&place, "https://") || absl::ConsumePrefix(&place, "http://");
  const bool is_plain = IsGraphic(place) && place.find_first_of("@?#\\") == place.npos;
  if (has_scheme && is_plain && !place.empty() && place.front() != '/') {
    return std::string(endpoint);
  }
  // A password may precede the @.
  return absl::InvalidArgumentError(absl::StrCat(
      "HF_ENDPOINT: expected a URL such as https://huggingface.co, without user, query and "
      "fragment; got ",
      absl::StrContains(value, '@') ? "a user" : absl::StrCat("\"", value, "\"")));
}

// Never shows the token.
absl::StatusOr<std::string> CheckToken(absl::string_view token, const std::string& source) {
  token = absl::StripAsciiWhitespace(token);
  if (IsGraphic(token)) return std::string(token);
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": expected a token: one line of printable ASCII without spaces"));
}

absl::StatusOr<std::string> ReadToken(const Variables& variables, const std::string& home) {
  if (IsTrue(variables("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return "";
  const std::string token = FirstOf(variables, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (!token.empty()) return CheckToken(token, "HF_TOKEN");
  std::string path = ExpandHome(variables("HF_TOKEN_PATH"), variables);
  const bool named = !path.empty();
  if (!named && home.empty()) return "";
  if (!named) path = absl::StrCat(home, "/token");
  const absl::StatusOr<std::string> file = ReadSmallFile(path, kMostTokenBytes);
  if (file.ok()) return CheckToken(*file, path);
  // The token of another user cannot be read, and is not meant for this process.
  if (!named && (absl::IsNotFound(file.status()) || absl::IsUnavailable(file.status()))) return "";
  return absl::InvalidArgumentError(absl::StrCat("Hub token: ", file.status().message()));
}

}  // namespace

absl::StatusOr<HubOptions> ReadHubOptions(const Variables& variables, const std::string& cache,
                                          bool offline) {
  HubOptions options;
  const std::string home = HomeOfHub(variables);
  ASSIGN_OR_RETURN(options.endpoint, ReadEndpoint(variables));
  ASSIGN_OR_RETURN(options.token, ReadToken(variables, home));
  options.offline =
      offline || IsTrue(FirstOf(variables, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  options.ca_file = variables("SSL_CERT_FILE");
  options.cache = cache;
  if (options.cache.empty()) {
    options.cache =
        ExpandHome(FirstOf(variables, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}), variables);
  }
  if (options.cache.empty() && !home.empty()) options.cache = absl::StrCat(home, "/hub");
  if (options.cache.empty()) {
    return absl::InvalidArgumentError(
        "--model-cache: expected a directory for Hub models (HOME is not set); got none");
  }
  return options;
}

}  // namespace attendant::server
