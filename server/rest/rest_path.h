// The paths of the Open Inference Protocol over HTTP.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attendant::server {

enum class RestMethod {
  kServerLive,
  kServerReady,
  kServerMetadata,
  kModelMetadata,
  kModelReady,
  kModelInfer,
  kModelConfig,
  kModelStatistics,  // of all models, if none is named
  kRepositoryIndex,
  kSharedMemoryStatus,
  kSharedMemoryUnregister,
  kRefused,  // of the protocol's, but not here
};

struct RestPath {
  RestMethod method;
  std::string_view verb = "GET";  // that the path is for
  std::string model = {};
  std::string version = {};  // empty: the one that is served
  const char* why = "";      // kRefused: in a sentence for the caller
};

// Returns nothing if the path is not one of the protocol's.
std::optional<RestPath> ParseRestPath(std::string_view path);

}  // namespace attendant::server
