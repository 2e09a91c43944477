// Parsers of the Hub's JSON: file listings, and files that list other files.
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
  int64_t size = -1;  // -1 if unknown
  // The SHA-256 of a Git LFS file, otherwise the SHA-1 of the Git blob, in lower-case hexadecimal
  // digits. Also the name of the blob in the cache. Empty if unknown.
  std::string etag;
};

struct HubListing {
  std::string commit;
  std::map<std::string, HubFile> files;  // by path, relative to the repository
};

// The largest text that is parsed.
inline constexpr int64_t kMostListingBytes = int64_t{32} << 20;

// Parses the response of /api/models/REPOSITORY/revision/REVISION?blobs=true. Skips files with
// unsafe paths (see IsSafePath). Returns INVALID_ARGUMENT for other texts.
absl::StatusOr<HubListing> ParseListing(absl::string_view text);

// Parses trees/COMMIT.json of the cache, written by newer versions of the Hub's library.
absl::StatusOr<HubListing> ParseTree(absl::string_view text, const std::string& commit);

// Returns the directories in modules.json of sentence-transformers, relative to its own.
absl::StatusOr<std::vector<std::string>> ParseModuleFolders(absl::string_view text);

// Returns the directories in the router_config.json of a Router, relative to its own.
absl::StatusOr<std::vector<std::string>> ParseRouterFolders(absl::string_view text);

// Returns the files listed in model.safetensors.index.json, without duplicates.
absl::StatusOr<std::vector<std::string>> ParseShards(absl::string_view text);

// Returns whether a path is relative, stays below its directory, and has no control characters,
// backslashes or empty components.
bool IsSafePath(absl::string_view path);

}  // namespace attendant::server
