#include "server/rest/rest_path.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/inference/refused_methods.h"
#include "server/settings/model_name.h"

namespace attendant::server {
namespace {

constexpr absl::string_view kModel = "MODEL";

// The first row that fits counts. MODEL stands for NAME, which may have slashes itself, or
// NAME/versions/VERSION; in a row that is refused, for anything.
struct Row {
  RestMethod method;
  const char* verb;
  absl::string_view path;
  const char* refused = nullptr;  // as this method of the protocol over gRPC
};

constexpr Row kRows[] = {
    {RestMethod::kServerLive, "GET", "health/live"},
    {RestMethod::kServerReady, "GET", "health/ready"},
    {RestMethod::kRefused, "GET", "trace/setting", "TraceSetting"},
    {RestMethod::kRefused, "GET", "logging", "LogSettings"},
    {RestMethod::kModelStatistics, "GET", "models/stats"},
    {RestMethod::kRefused, "POST", "models/MODEL/generate", "ModelStreamInfer"},
    {RestMethod::kRefused, "POST", "models/MODEL/generate_stream", "ModelStreamInfer"},
    {RestMethod::kRefused, "GET", "models/MODEL/trace/setting", "TraceSetting"},
    {RestMethod::kModelInfer, "POST", "models/MODEL/infer"},
    {RestMethod::kModelReady, "GET", "models/MODEL/ready"},
    {RestMethod::kModelConfig, "GET", "models/MODEL/config"},
    {RestMethod::kModelStatistics, "GET", "models/MODEL/stats"},
    {RestMethod::kModelMetadata, "GET", "models/MODEL"},
    {RestMethod::kRepositoryIndex, "POST", "repository/index"},
    {RestMethod::kRefused, "POST", "repository/models/MODEL/load", "RepositoryModelLoad"},
    {RestMethod::kRefused, "POST", "repository/models/MODEL/unload", "RepositoryModelLoad"},
};

RestPath Refused(std::string_view verb, const char* grpc_method) {
  return {RestMethod::kRefused, verb, "", "",
          WhyNoMethod(absl::StrCat("/inference.GRPCInferenceService/", grpc_method))};
}

// Reads NAME or NAME/versions/VERSION. Returns false if it is neither.
bool ReadModel(absl::string_view text, RestPath& path) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  const auto end = std::find_if(parts.begin(), parts.end(), IsPathWord);
  path.model = absl::StrJoin(parts.begin(), end, "/");
  if (end == parts.end()) return !path.model.empty();
  if (*end != "versions" || parts.end() - end != 2) return false;
  path.version = parts.back();
  return !path.model.empty() && !path.version.empty();
}

std::optional<RestPath> Match(const Row& row, absl::string_view path) {
  RestPath found = {row.method, row.verb};
  const size_t at = row.path.find(kModel);
  if (at == row.path.npos) {
    if (path != row.path) return std::nullopt;
  } else if (!absl::ConsumePrefix(&path, row.path.substr(0, at)) ||
             !absl::ConsumeSuffix(&path, row.path.substr(at + kModel.size()))) {
    return std::nullopt;
  }
  if (row.refused != nullptr) return Refused(row.verb, row.refused);
  return at == row.path.npos || ReadModel(path, found) ? std::optional(found) : std::nullopt;
}

// KINDsharedmemory[/region/NAME]/METHOD
std::optional<RestPath> OfSharedMemory(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  const bool of_one = parts.size() == 4 && parts[1] == "region";
  if (parts[0] != "systemsharedmemory" && parts[0] != "cudasharedmemory") return std::nullopt;
  if (parts.size() != 2 && !of_one) return std::nullopt;
  if (parts.back() == "status") return RestPath{RestMethod::kSharedMemoryStatus};
  if (parts.back() == "unregister") return RestPath{RestMethod::kSharedMemoryUnregister, "POST"};
  if (parts.back() == "register") return Refused("POST", "SystemSharedMemoryRegister");
  return std::nullopt;
}

}  // namespace

std::optional<RestPath> ParseRestPath(std::string_view path) {
  if (path == "/v2") return RestPath{RestMethod::kServerMetadata};
  absl::string_view rest(path.data(), path.size());
  if (!absl::ConsumePrefix(&rest, "/v2/")) return std::nullopt;
  for (const Row& row : kRows) {
    if (std::optional<RestPath> found = Match(row, rest)) return found;
  }
  return OfSharedMemory(rest);
}

}  // namespace attendant::server
