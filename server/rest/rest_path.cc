#include "server/rest/rest_path.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/inference/refused_methods.h"
#include "server/settings/model_name.h"

namespace attendant::server {
namespace {

using Parts = std::vector<std::string>;

RestPath Refused(std::string_view verb, const char* grpc_method) {
  return {RestMethod::kRefused, verb, "", "",
          WhyNoMethod(absl::StrCat("/inference.GRPCInferenceService/", grpc_method))};
}

// Splits "models/NAME…" behind the name, which may have slashes itself. Returns the name, and
// leaves what follows it in `parts`.
std::string TakeName(Parts& parts) {
  const auto end = std::find_if(parts.begin() + 1, parts.end(), IsPathWord);
  const std::string name = absl::StrJoin(parts.begin() + 1, end, "/");
  parts.erase(parts.begin(), end);
  return name;
}

// The methods of the protocol that are refused, by how their paths end.
std::optional<RestPath> OfRefused(const Parts& parts) {
  const size_t count = parts.size();
  if (count < 3) return std::nullopt;
  if (parts[count - 1] == "generate" || parts[count - 1] == "generate_stream") {
    return Refused("POST", "ModelStreamInfer");
  }
  if (count < 4 || parts[count - 2] != "trace" || parts[count - 1] != "setting") {
    return std::nullopt;
  }
  return Refused("GET", "TraceSetting");
}

// models/NAME[/versions/VERSION][/METHOD]
std::optional<RestPath> OfModel(Parts parts) {
  if (parts == Parts{"models", "stats"}) return RestPath{RestMethod::kModelStatistics};
  if (const std::optional<RestPath> refused = OfRefused(parts)) return refused;
  RestPath path = {RestMethod::kModelMetadata};
  path.model = TakeName(parts);
  if (path.model.empty()) return std::nullopt;
  if (parts.size() >= 2 && parts[0] == "versions") {
    if (parts[1].empty()) return std::nullopt;
    path.version = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty()) return path;
  if (parts.size() != 1) return std::nullopt;
  if (parts[0] == "infer") {
    path.method = RestMethod::kModelInfer;
    path.verb = "POST";
  } else if (parts[0] == "ready") {
    path.method = RestMethod::kModelReady;
  } else if (parts[0] == "config") {
    path.method = RestMethod::kModelConfig;
  } else if (parts[0] == "stats") {
    path.method = RestMethod::kModelStatistics;
  } else {
    return std::nullopt;
  }
  return path;
}

// KINDsharedmemory[/region/NAME]/METHOD
std::optional<RestPath> OfSharedMemory(const Parts& parts) {
  const bool of_one = parts.size() == 4 && parts[1] == "region";
  if (parts.size() != 2 && !of_one) return std::nullopt;
  if (parts.back() == "status") return RestPath{RestMethod::kSharedMemoryStatus};
  if (parts.back() == "unregister") return RestPath{RestMethod::kSharedMemoryUnregister, "POST"};
  if (parts.back() == "register") return Refused("POST", "SystemSharedMemoryRegister");
  return std::nullopt;
}

std::optional<RestPath> OfRepository(const Parts& parts) {
  if (parts == Parts{"repository", "index"}) return RestPath{RestMethod::kRepositoryIndex, "POST"};
  const bool of_model = parts.size() >= 4 && parts[1] == "models" &&
                        (parts.back() == "load" || parts.back() == "unload");
  if (!of_model) return std::nullopt;
  return Refused("POST", "RepositoryModelLoad");
}

}  // namespace

std::optional<RestPath> ParseRestPath(std::string_view path) {
  if (path == "/v2" || path == "/v2/") return RestPath{RestMethod::kServerMetadata};
  absl::string_view rest(path.data(), path.size());
  if (!absl::ConsumePrefix(&rest, "/v2/")) return std::nullopt;
  const Parts parts = absl::StrSplit(rest, '/');
  if (parts == Parts{"health", "live"}) return RestPath{RestMethod::kServerLive};
  if (parts == Parts{"health", "ready"}) return RestPath{RestMethod::kServerReady};
  if (parts == Parts{"trace", "setting"}) return Refused("GET", "TraceSetting");
  if (parts == Parts{"logging"}) return Refused("GET", "LogSettings");
  if (parts[0] == "models") return OfModel(parts);
  if (parts[0] == "repository") return OfRepository(parts);
  if (parts[0] == "systemsharedmemory" || parts[0] == "cudasharedmemory") {
    return OfSharedMemory(parts);
  }
  return std::nullopt;
}

}  // namespace attendant::server
