#include "server/host/numa_topology.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

using Nodes = std::map<int, CpuList>;  // by number

bool Contains(const CpuList& list, int number) {
  return std::binary_search(list.begin(), list.end(), number);
}

std::optional<std::string> ReadLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::getline(file, line);
  return line;
}

// Returns every node with all of its CPUs, or nothing if a list is malformed.
std::optional<Nodes> ReadNodes(const std::string& root) {
  Nodes nodes;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(root, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    int id;
    if (!absl::StartsWith(name, "node") || !absl::SimpleAtoi(name.substr(4), &id)) continue;
    const std::optional<std::string> line = ReadLine(absl::StrCat(root, "/", name, "/cpulist"));
    std::optional<CpuList> cpus = line ? ParseCpuList(*line) : std::nullopt;
    if (!cpus) return std::nullopt;
    nodes[id] = *std::move(cpus);
  }
  return nodes;
}

// Returns the nodes with memory that this process may use. Nodes that the files do not mention are
// allowed.
CpuList NodesWithMemory(const std::string& root, const std::string& status_file,
                        const Nodes& nodes) {
  CpuList usable;
  for (const auto& [id, cpus] : nodes) usable.push_back(id);
  const auto keep = [&](absl::string_view text) {
    const std::optional<CpuList> listed = ParseCpuList(text);
    if (!listed) return;
    std::erase_if(usable, [&](int id) { return !Contains(*listed, id); });
  };
  if (const auto line = ReadLine(root + "/has_memory")) keep(*line);
  std::ifstream status(status_file);
  for (std::string line; std::getline(status, line);) {
    absl::string_view list = line;
    if (absl::ConsumePrefix(&list, "Mems_allowed_list:")) keep(list);
  }
  return usable;
}

// Returns the node in `candidates` that is nearest to node `id`. Ties go to the lowest number. The
// kernel lists distances in the order of the nodes.
int Nearest(const std::string& root, const Nodes& nodes, int id, const CpuList& candidates) {
  std::ifstream file(absl::StrCat(root, "/node", id, "/distance"));
  int nearest = candidates.front(), shortest = -1;
  for (const auto& [other, cpus] : nodes) {
    int distance;
    if (!(file >> distance)) break;
    if (!Contains(candidates, other) || (shortest >= 0 && distance >= shortest)) continue;
    nearest = other;
    shortest = distance;
  }
  return nearest;
}

}  // namespace

std::vector<NumaNode> FindNumaNodes(const CpuList& allowed, const std::string& root,
                                    const std::string& status) {
  const std::vector<NumaNode> one = {{0, allowed}};
  const std::optional<Nodes> nodes = ReadNodes(root);
  if (!nodes) return one;
  const CpuList with_memory = NodesWithMemory(root, status, *nodes);
  if (with_memory.size() < 2) return one;

  Nodes used;
  size_t found = 0;
  for (const auto& [id, cpus] : *nodes) {
    const int home = Contains(with_memory, id) ? id : Nearest(root, *nodes, id, with_memory);
    for (const int cpu : cpus) {
      if (!Contains(allowed, cpu)) continue;
      used[home].push_back(cpu);
      ++found;
    }
  }
  if (found != allowed.size()) return one;
  std::vector<NumaNode> result;
  for (auto& [id, cpus] : used) {
    std::sort(cpus.begin(), cpus.end());
    result.push_back({id, std::move(cpus)});
  }
  const int here = sched_getcpu();
  std::stable_partition(result.begin(), result.end(),
                        [&](const NumaNode& node) { return Contains(node.cpus, here); });
  return result;
}

}  // namespace attendant
