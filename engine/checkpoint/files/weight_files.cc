#include "engine/checkpoint/files/weight_files.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/other_formats.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr size_t kMostShards = 512;
constexpr JsonLimits kIndexLimits = {int64_t{64} << 20, /*max_depth=*/8, 200'000};

using WeightMap = std::map<std::string, std::string>;  // from tensors to files

// Adds a problem if the index has no map, or places a tensor elsewhere.
WeightMap ReadWeightMap(const Json& index, Problems& problems) {
  WeightMap map;
  const auto entries = index.find("weight_map");
  if (!index.is_object() || entries == index.end() || !entries->is_object()) {
    problems.Add("weight_map: expected an object");
    return map;
  }
  for (const auto& [tensor, file] : entries->items()) {
    if (file.is_string() && IsPlainName(file.get_ref<const std::string&>())) {
      map.emplace(tensor, file.get<std::string>());
      continue;
    }
    problems.Add("weight_map, tensor ", Quoted(tensor),
                 ": expected the plain name of a file in this directory; got ", Describe(file));
    break;
  }
  return map;
}

// Checks that each tensor that the map places in `shard` is there, and that the map places each
// tensor of the shard there.
void CompareNames(const WeightMap& map, const std::string& shard, const SafetensorsFile& file,
                  Problems& problems) {
  for (const auto& [tensor, name] : map) {
    if (name == shard && !file.tensors.contains(tensor)) {
      problems.Add("tensor ", Quoted(tensor), ": not found in ", Quoted(shard),
                   ", where the index places it");
    }
  }
  for (const auto& [tensor, unused] : file.tensors) {
    const auto entry = map.find(tensor);
    if (entry != map.end() && entry->second == shard) continue;
    problems.Add("tensor ", Quoted(tensor), ": in ", Quoted(shard), ", but the index ",
                 entry == map.end() ? "does not list it"
                                    : absl::StrCat("places it in ", Quoted(entry->second)));
  }
}

void CompareTotal(const Json& index, const std::string& path, WeightFiles& opened) {
  const auto metadata = index.find("metadata");
  if (metadata == index.end() || !metadata->is_object()) return;
  const auto total = metadata->find("total_size");
  if (total == metadata->end()) return;
  int64_t bytes = 0;
  for (const SafetensorsFile& shard : opened.files) {
    for (const auto& [name, tensor] : shard.tensors) bytes += tensor.bytes;
  }
  if (AsCount(*total) == bytes) return;
  opened.warnings.push_back(absl::StrCat(path, ": metadata.total_size says ", Describe(*total),
                                         " bytes, the tensors have ", bytes));
}

absl::StatusOr<WeightFiles> OpenShards(const std::string& folder,
                                       const CheckpointOptions& options) {
  const std::string path = absl::StrCat(folder, "/", kIndexFile);
  ASSIGN_OR_RETURN(const Json index, ReadJsonFile(path, kIndexLimits));
  Problems problems(path);
  const WeightMap map = ReadWeightMap(index, problems);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map) shards.insert(file);
  if (problems.empty() && (shards.empty() || shards.size() > kMostShards)) {
    problems.Add("expected 1..", kMostShards, " files; got ", shards.size());
  }
  RETURN_IF_ERROR(problems.ToStatus());
  WeightFiles opened;
  int64_t bytes_left = options.max_model_bytes;
  for (const std::string& name : shards) {
    absl::StatusOr<SafetensorsFile> shard =
        OpenSafetensors(absl::StrCat(folder, "/", name), bytes_left, options.max_header_bytes);
    problems.AddError(shard.status());
    if (!shard.ok()) continue;
    bytes_left -= shard->file.size();
    CompareNames(map, name, *shard, problems);
    opened.files.push_back(*std::move(shard));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  CompareTotal(index, path, opened);
  return opened;
}

}  // namespace

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

void CheckFileName(const std::string& name, Problems& problems) {
  if (IsPlainName(name) || (name.empty() && !problems.empty())) return;
  problems.Add("file: expected the plain name of a file in this directory; got ", Quoted(name));
}

absl::StatusOr<WeightFiles> OpenWeightFile(const std::string& folder, const std::string& name,
                                           const CheckpointOptions& options) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (IsPickle(name)) return RefusePickle(folder, name);
  ASSIGN_OR_RETURN(SafetensorsFile file,
                   OpenSafetensors(path, options.max_model_bytes, options.max_header_bytes));
  WeightFiles opened;
  opened.files.push_back(std::move(file));
  return opened;
}

absl::StatusOr<WeightFiles> OpenWeightFiles(const std::string& folder,
                                            const CheckpointOptions& options) {
  if (PathExists(absl::StrCat(folder, "/", kSingleFile))) {
    return OpenWeightFile(folder, kSingleFile, options);
  }
  if (PathExists(absl::StrCat(folder, "/", kIndexFile))) return OpenShards(folder, options);
  RETURN_IF_ERROR(RefuseOtherFormats(folder));
  return absl::NotFoundError(absl::StrCat(folder, ": no ", kSingleFile, " or ", kIndexFile));
}

}  // namespace attendant
