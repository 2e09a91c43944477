#include "server/hub/wanted_files.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace attendant::server {
namespace {

constexpr char kWeights[] = "model.safetensors", kIndex[] = "model.safetensors.index.json";
// Heads that FlagEmbedding saves along with the weights.
constexpr const char* kM3Weights[] = {"sparse_linear.safetensors", "colbert_linear.safetensors"};
constexpr char kModules[] = "modules.json", kTorchDescription[] = "attendant.json";
constexpr char kRouter[] = "router_config.json";

// Each of these marks a folder as a model, or as a module of one.
constexpr const char* kDescriptions[] = {"config.json", kModules, kTorchDescription};

constexpr const char* kSideFiles[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.txt",
                                      "vocab.json",
                                      "merges.txt",
                                      "bpe.codes",
                                      "preprocessor_config.json",
                                      "config_sentence_transformers.json",
                                      "artifact.metadata"};  // of Stanford's ColBERT
constexpr const char* kSentencePieceEnds[] = {".model", ".spm"};

// Weight files of other formats or places.
constexpr const char* kOtherEnds[] = {".bin",  ".pt",      ".pth", ".ckpt", ".onnx",
                                      ".gguf", ".msgpack", ".h5",  ".ot",   ".safetensors"};
constexpr const char* kPickledEnds[] = {".bin", ".pt", ".pth"};
constexpr size_t kMostShown = 5;

template <size_t count>
bool EndsWithAny(absl::string_view text, const char* const (&ends)[count]) {
  return std::any_of(std::begin(ends), std::end(ends),
                     [&](const char* end) { return absl::EndsWith(text, end); });
}

bool IsSideFile(absl::string_view name) {
  if (EndsWithAny(name, kSentencePieceEnds)) return true;
  // sentence_bert_config.json, sentence_roberta_config.json, …
  if (absl::StartsWith(name, "sentence_") && absl::EndsWith(name, "_config.json")) return true;
  return std::find(std::begin(kSideFiles), std::end(kSideFiles), name) != std::end(kSideFiles);
}

std::string PathIn(const std::string& folder, absl::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", name);
}

class Choice {
 public:
  Choice(const HubListing& listing, const ReadHubFile& read) : listing_(listing), read_(read) {}

  absl::StatusOr<std::vector<std::string>> Make() {
    if (Has(kTorchDescription)) {
      AddTorchModule();
    } else if (absl::Status status = AddModules(); !status.ok()) {
      return status;
    }
    if (!has_weights_) return NoWeights("");
    if (last_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("expected a model with ",
                                                     absl::StrJoin(kDescriptions, " or "),
                                                     "; got none of these files"));
    }
    chosen_.insert(chosen_.end(), last_.begin(), last_.end());
    return std::move(chosen_);
  }

 private:
  bool Has(const std::string& path) const { return listing_.files.contains(path); }

  // Returns the names of the files directly in a folder.
  std::vector<std::string> NamesIn(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& [path, file] : listing_.files) {
      absl::string_view name = path;
      if (!folder.empty() && !absl::ConsumePrefix(&name, folder + "/")) continue;
      if (!absl::StrContains(name, '/')) names.emplace_back(name);
    }
    return names;
  }

  // The description names its weight file, which may have any name.
  void AddTorchModule() {
    for (const std::string& name : NamesIn("")) {
      if (!IsWeightFile(name)) continue;
      chosen_.push_back(name);
      has_weights_ = true;
    }
    last_.push_back(kTorchDescription);
  }

  absl::Status AddModules() {
    std::set<std::string> modules;
    if (Has(kModules)) {
      ASSIGN_OR_RETURN(const std::string text, read_(kModules));
      ASSIGN_OR_RETURN(const std::vector<std::string> folders, ParseModuleFolders(text));
      for (const std::string& folder : folders) {
        modules.insert(folder);
        RETURN_IF_ERROR(AddRoutes(folder, modules));
      }
    } else {
      modules.insert("");
    }
    if (!modules.contains("")) AddSideFiles("");
    for (const std::string& folder : modules) {
      AddSideFiles(folder);
      RETURN_IF_ERROR(AddWeights(folder));
    }
    return absl::OkStatus();
  }

  // Adds the modules of a Router in this folder, if there is one.
  absl::Status AddRoutes(const std::string& folder, std::set<std::string>& modules) {
    const std::string path = PathIn(folder, kRouter);
    if (!Has(path)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string text, read_(path));
    ASSIGN_OR_RETURN(const std::vector<std::string> routes, ParseRouterFolders(text));
    for (const std::string& route : routes) modules.insert(PathIn(folder, route));
    chosen_.push_back(path);
    return absl::OkStatus();
  }

  void AddSideFiles(const std::string& folder) {
    for (const std::string& name : NamesIn(folder)) {
      if (IsSideFile(name)) chosen_.push_back(PathIn(folder, name));
    }
    for (const char* name : kDescriptions) {
      if (Has(PathIn(folder, name))) last_.push_back(PathIn(folder, name));
    }
  }

  absl::Status AddWeights(const std::string& folder) {
    const std::vector<std::string> names = NamesIn(folder);
    const bool has_weights = Has(PathIn(folder, kWeights));
    if (!has_weights && Has(PathIn(folder, kIndex))) return AddShards(folder);
    if (has_weights) chosen_.push_back(PathIn(folder, kWeights));
    for (const char* name : kM3Weights) {
      if (Has(PathIn(folder, name))) chosen_.push_back(PathIn(folder, name));
    }
    has_weights_ = has_weights_ || has_weights;
    // A module such as pooling has no weights.
    const bool has_pickled = std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return EndsWithAny(name, kPickledEnds);
    });
    return has_weights || !has_pickled ? absl::OkStatus() : NoWeights(folder);
  }

  absl::Status AddShards(const std::string& folder) {
    const std::string index = PathIn(folder, kIndex);
    ASSIGN_OR_RETURN(const std::string text, read_(index));
    ASSIGN_OR_RETURN(const std::vector<std::string> shards, ParseShards(text));
    for (const std::string& shard : shards) {
      if (!Has(PathIn(folder, shard))) {
        return absl::InvalidArgumentError(absl::StrCat("expected the file ", PathIn(folder, shard),
                                                       ", which ", index, " names; got none"));
      }
      chosen_.push_back(PathIn(folder, shard));
    }
    chosen_.push_back(index);
    has_weights_ = true;
    return absl::OkStatus();
  }

  absl::Status NoWeights(const std::string& folder) const {
    std::vector<std::string> found;
    bool has_pickled = false;
    for (const auto& [path, file] : listing_.files) {
      if (!EndsWithAny(path, kOtherEnds)) continue;
      found.push_back(path);
      has_pickled = has_pickled || EndsWithAny(path, kPickledEnds);
    }
    const size_t count = found.size();
    found.resize(std::min(count, kMostShown));
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", PathIn(folder, kWeights), " or ", PathIn(folder, kIndex), "; got ",
        found.empty() ? "no weights" : absl::StrJoin(found, ", "),
        count > kMostShown ? absl::StrCat(" and ", count - kMostShown, " more") : "",
        has_pickled ? "; https://huggingface.co/spaces/safetensors/convert opens a pull request "
                      "with safetensors; then use hf:ORG/REPO@refs/pr/NUMBER"
        : found.empty() ? ""
                        : "; use the repository that they were converted from"));
  }

  const HubListing& listing_;
  const ReadHubFile& read_;
  std::vector<std::string> chosen_, last_;
  bool has_weights_ = false;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ChooseFiles(const HubListing& listing,
                                                     const ReadHubFile& read) {
  return Choice(listing, read).Make();
}

bool IsWeightFile(const std::string& path) { return absl::EndsWith(path, ".safetensors"); }

}  // namespace attendant::server
