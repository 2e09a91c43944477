// The JSON texts of the Hub: lists of files, and the files that name other files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// A file of a repository at a commit.
struct HubFile {
  int64_t size = -1;  // -1: not known
  // The SHA-256 of a file of Git LFS, or else the SHA-1 of a Git blob, in lower-case hexadecimal
  // digits. It is the name of the file's blob in the cache. Empty: not known.
  std::string etag;
};

struct HubListing {
  std::string commit;
  std::map<std::string, HubFile> files;  // by path, relative to the repository
};

// The largest text that is parsed here.
inline constexpr int64_t kMostListingBytes = int64_t{32} << 20;

// Parses the response of /api/models/REPOSITORY/revision/REVISION?blobs=true. Skips files with
// unsafe paths (see IsSafePath). INVALID_ARGUMENT: the text is not such a response.
absl::StatusOr<HubListing> ParseListing(absl::string_view text);

// Parses trees/COMMIT.json of the cache, which newer versions of the Hub's library write.
absl::StatusOr<HubListing> ParseTree(absl::string_view text, const std::string& commit);

// Returns the folders in modules.json of sentence-transformers, relative to its own folder.
absl::StatusOr<std::vector<std::string>> ParseModuleFolders(absl::string_view text);

// Returns the folders in the router_config.json of a Router, relative to its own folder.
absl::StatusOr<std::vector<std::string>> ParseRouterFolders(absl::string_view text);

// Returns the files that model.safetensors.index.json names, each once.
absl::StatusOr<std::vector<std::string>> ParseShards(absl::string_view text);

// Returns whether a path is relative, stays below its folder, and has neither control characters,
// backslashes nor empty parts.
bool IsSafePath(absl::string_view path);

}  // namespace attendant::server
