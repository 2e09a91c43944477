// HTTP paths of the Open Inference Protocol.
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
  kModelStatistics,  // of all models if none is named
  kRepositoryIndex,
  kSharedMemoryStatus,
  kSharedMemoryUnregister,
  kRefused,  // defined by the protocol, but not supported
};

struct RestPath {
  RestMethod method;
  std::string_view verb = "GET";  // of the path
  std::string model = {};
  std::string version = {};  // empty: the served version
  const char* why = "";      // kRefused: the reason for the client
};

// Returns nullopt for paths outside the protocol.
std::optional<RestPath> ParseRestPath(std::string_view path);

}  // namespace attendant::server
