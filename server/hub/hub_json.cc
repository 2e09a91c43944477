#include "server/hub/hub_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/json.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {
namespace {

constexpr JsonLimits kListingLimits = {kMostListingBytes, /*max_depth=*/64, int64_t{1} << 21};
constexpr size_t kMostPathBytes = 1024, kMostPartBytes = 255, kMostFolders = 16, kMostShards = 512;

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

int64_t SizeOf(const Json& object, const char* key) {
  const Json* member = Member(object, key);
  return member == nullptr ? -1 : AsCount(*member).value_or(-1);
}

// Takes the digest of a file, by the keys that name it in the two lists.
HubFile FileOf(int64_t size, const std::string& sha1, const std::string& sha256) {
  HubFile file = {size, {}};
  if (IsHex(sha256, 64)) {
    file.etag = sha256;
  } else if (IsHex(sha1, 40)) {
    file.etag = sha1;
  }
  return file;
}

absl::Status Unlike(const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", expected, "; got something else"));
}

}  // namespace

bool IsSafePath(absl::string_view path) {
  if (path.size() > kMostPathBytes) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return !part.empty() && part.size() <= kMostPartBytes && part != "." && part != ".." &&
           std::none_of(part.begin(), part.end(),
                        [](char c) { return absl::ascii_iscntrl(c) || c == '\\'; });
  });
}

absl::StatusOr<HubListing> ParseListing(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, kListingLimits, "the Hub's list of files"));
  HubListing listing;
  listing.commit = TextAt(json, "sha");
  const Json* siblings = Member(json, "siblings");
  if (!IsCommit(listing.commit) || siblings == nullptr || !siblings->is_array()) {
    return Unlike("the Hub's list of files, with sha and siblings");
  }
  for (const Json& sibling : *siblings) {
    const std::string path = TextAt(sibling, "rfilename");
    if (!IsSafePath(path)) continue;
    const Json* lfs = Member(sibling, "lfs");
    listing.files[path] = FileOf(SizeOf(sibling, "size"), TextAt(sibling, "blobId"),
                                 lfs == nullptr ? "" : TextAt(*lfs, "sha256"));
  }
  return listing;
}

absl::StatusOr<HubListing> ParseTree(absl::string_view text, const std::string& commit) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, kListingLimits, "trees of the cache"));
  const Json* files = Member(json, "files");
  if (SizeOf(json, "format_version") != 1 || files == nullptr || !files->is_object()) {
    return Unlike("a tree of the Hub's library in format_version 1");
  }
  HubListing listing = {commit, {}};
  for (const auto& [path, file] : files->items()) {
    if (!IsSafePath(path)) continue;
    listing.files[path] =
        FileOf(SizeOf(file, "size"), TextAt(file, "blob_id"), TextAt(file, "lfs_sha256"));
  }
  return listing;
}

absl::StatusOr<std::vector<std::string>> ParseModuleFolders(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, JsonLimits(), "modules.json"));
  if (!json.is_array() || json.size() > kMostFolders) {
    return Unlike(absl::StrCat("a list of at most ", kMostFolders, " modules in modules.json"));
  }
  std::vector<std::string> folders;
  for (const Json& module : json) {
    std::string path = TextAt(module, "path");
    if (!path.empty() && (!IsSafePath(path) || absl::StrContains(path, '/'))) {
      return Unlike("plain directory names as path in modules.json");
    }
    // A module that only computes has a path without files.
    folders.push_back(std::move(path));
  }
  return folders;
}

absl::StatusOr<std::vector<std::string>> ParseRouterFolders(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, JsonLimits(), "router_config.json"));
  const Json* types = Member(json, "types");
  if (types == nullptr || !types->is_object() || types->size() > kMostFolders) {
    return Unlike(absl::StrCat("an object types of at most ", kMostFolders,
                               " modules in router_config.json"));
  }
  std::vector<std::string> folders;
  for (const auto& [name, type] : types->items()) {
    if (!IsSafePath(name) || absl::StrContains(name, '/')) {
      return Unlike("plain directory names as types in router_config.json");
    }
    folders.push_back(name);
  }
  return folders;
}

absl::StatusOr<std::vector<std::string>> ParseShards(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, kListingLimits, "the index of weight files"));
  const Json* map = Member(json, "weight_map");
  if (map == nullptr || !map->is_object()) return Unlike("an object weight_map in the index");
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!IsSafePath(name) || absl::StrContains(name, '/')) {
      return Unlike("plain file names in the index's weight_map");
    }
    shards.insert(name);
  }
  if (shards.empty() || shards.size() > kMostShards) {
    return Unlike(absl::StrCat("1 to ", kMostShards, " files in the index of weight files"));
  }
  return std::vector<std::string>(shards.begin(), shards.end());
}

}  // namespace attendant::server
