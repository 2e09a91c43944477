#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/late_interaction/text_lengths.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

constexpr int64_t kMostModules = 16;
// A Transformer of the folder's authors, which only some families have; see
// Family::own_transformer.
constexpr char kOwnTransformer[] = "custom_st.Transformer";
// The inputs and outputs of modules, by their names in config.json.
constexpr char kPooledVectors[] = "sentence_embedding", kTokenVectors[] = "token_embeddings";

// A Transformer that makes pooled vectors, whatever its configuration says.
constexpr char kClipModel[] = "CLIPModel";

constexpr char kStatic[] = "StaticEmbedding", kSparseStatic[] = "SparseStaticEmbedding";
constexpr char kPooling[] = "Pooling", kDense[] = "Dense", kNormalize[] = "Normalize";

// The types of modules, and the member that a module's directory becomes: once, and after a
// Transformer.
using ModuleRow = Named<std::string SentenceModules::*>;
constexpr ModuleRow kModules[] = {
    {"Transformer", &SentenceModules::transformer},
    {"MLMTransformer", &SentenceModules::transformer},  // before version 5.4, for SpladePooling
    {kClipModel, &SentenceModules::transformer},  // before that version, for both towers of CLIP
    {kStatic, &SentenceModules::transformer},
    {kSparseStatic, &SentenceModules::transformer},
    {kPooling, &SentenceModules::pooling},
    {kDense, nullptr},
    {kNormalize, nullptr},
    {"Dropout", nullptr},  // changes nothing at inference
    {"MultiVectorMask", &SentenceModules::mask},
    {"SpladePooling", &SentenceModules::splade_pooling},
    {"LogitScore", &SentenceModules::logit_score},
};

// Returns the folder of a module: the folder of the model or one inside it, for a module of a
// Router perhaps inside the Router's.
std::string ModuleFolder(const std::string& folder, const std::string& path, Problems& problems) {
  if (path.empty() || path == ".") return folder;
  const std::vector<std::string> names = absl::StrSplit(path, '/');
  if (names.size() > 2 || !absl::c_all_of(names, IsPlainName)) {
    problems.Add("path: expected the plain name of a directory in this one; got ", Quoted(path));
  }
  return absl::StrCat(folder, "/", path);
}

bool IsRouter(const Json& entry) {
  const std::string type = entry.is_object() ? TextAt(entry, "type") : "";
  return absl::StartsWith(type, "sentence_transformers.") &&
         (absl::EndsWith(type, ".Router") || absl::EndsWith(type, ".Asym"));  // before version 5
}

// Returns the modules of a route of the Router `entry`, as modules.json would list them.
Json ModulesOfRoute(const std::string& folder, const Json& entry, std::string route,
                    Problems& problems) {
  ConfigReader reader(entry, problems);
  const std::string path = reader.Text({"path"}, "");
  const std::string own = ModuleFolder(folder, path, problems);
  std::string file = absl::StrCat(own, "/router_config.json");
  const std::string older = absl::StrCat(own, "/config.json");  // of Asym
  if (!path.empty() && !PathExists(file) && PathExists(older)) file = older;
  Json modules = Json::array();
  const absl::StatusOr<Json> json = ReadJsonFile(file);
  problems.AddError(json.status());
  if (!json.ok()) return modules;
  const auto object = [&](const char* key) {
    const Json value = json->is_object() ? json->value(key, Json()) : Json();
    return value.is_object() ? value : Json::object();
  };
  const Json routes = object("structure"), types = object("types");
  const Json parameters = object("parameters");
  if (route.empty() && !parameters.value("route_mappings", Json()).empty()) {
    problems.Add(file, ": route_mappings: not supported; name a route, route=NAME");
  }
  if (route.empty()) route = TextAt(parameters, "default_route");
  const Json names = routes.value(route, Json());
  if (!names.is_array()) {
    std::vector<std::string> known;
    for (const auto& [name, unused] : routes.items()) known.push_back(name);
    problems.Add("route: ", route.empty() ? "missing; " : "", "expected one of ",
                 absl::StrJoin(known, ", "), " (", file, ")",
                 route.empty() ? "" : absl::StrCat("; got ", Quoted(route)));
    return modules;
  }
  for (const Json& name : names) {
    const std::string id = name.is_string() ? name.get<std::string>() : "";
    modules.push_back({{"type", types.value(id, Json())},
                       {"path", path.empty() ? id : absl::StrCat(path, "/", id)}});
  }
  return modules;
}

// Puts the modules of the route in the place of a Router.
Json WithoutRouter(const std::string& folder, const Json& list, const std::string& route,
                   Problems& problems) {
  Json modules = Json::array();
  bool has_router = false;
  for (const Json& entry : list) {
    has_router |= IsRouter(entry);
    const Json own =
        IsRouter(entry) ? ModulesOfRoute(folder, entry, route, problems) : Json::array({entry});
    modules.insert(modules.end(), own.begin(), own.end());
  }
  if (!has_router && !route.empty()) {
    problems.Add("route: not supported (modules.json has no Router); got ", Quoted(route));
  }
  return modules;
}

// Reads the modules of a list in their order.
class ModuleList {
 public:
  ModuleList(const std::string& folder, Problems& problems)
      : folder_(folder), problems_(problems) {}

  void Add(const Json& entry) {
    ConfigReader reader(entry, problems_);
    const std::string type = reader.Text({"type"});
    path_ = ModuleFolder(folder_, reader.Text({"path"}, ""), problems_);
    const std::vector<std::string> parts = absl::StrSplit(type, '.');
    for (const ModuleRow& module : kModules) {
      const bool is_token_dense = parts.front() == "pylate" && parts.back() == kDense;
      const bool is_own = type == kOwnTransformer;
      if (parts.front() != "sentence_transformers" && !is_token_dense && !is_own) continue;
      if (parts.back() != module.name) continue;
      if (is_own) found_.own_code = type;
      name_ = module.name;
      if (name_ == kDense) return AddDense();
      if (name_ == kNormalize) return AddNormalize();
      if (module.value != nullptr) AddOnce(module);
      return;
    }
    problems_.Add(
        "type: expected Transformer, StaticEmbedding, SparseStaticEmbedding, Pooling, Dense, "
        "Normalize, Dropout, MultiVectorMask, SpladePooling or LogitScore of "
        "sentence_transformers; got ",
        Quoted(type));
  }

  SentenceModules Finish() {
    if (!problems_.empty()) return std::move(found_);
    if (found_.transformer.empty()) problems_.Add("no Transformer module");
    const bool has_others = !found_.pooling.empty() || has_normalize_ || found_.has_token_head ||
                            !found_.mask.empty() ||
                            (!found_.splade_pooling.empty() && !found_.logit_score.empty());
    for (const auto& [module, folder] : {std::pair{"SpladePooling", &found_.splade_pooling},
                                         std::pair{"LogitScore", &found_.logit_score}}) {
      if (folder->empty() || !has_others) continue;
      problems_.Add(module, ": cannot be combined with modules other than a Transformer");
    }
    if (found_.is_static && (!found_.pooling.empty() || found_.has_token_head ||
                             !found_.mask.empty() || !found_.splade_pooling.empty())) {
      problems_.Add(
          "StaticEmbedding: cannot be combined with Pooling, SpladePooling or modules for token "
          "vectors, because it pools by itself");
    }
    if (found_.is_sparse_static && (has_others || !found_.splade_pooling.empty())) {
      problems_.Add("SparseStaticEmbedding: cannot be combined with other modules");
    }
    if (!found_.mask.empty()) found_.mask += "/config.json";
    return std::move(found_);
  }

 private:
  void Refuse(const std::string& expected) {
    problems_.Add(name_, " in ", Quoted(path_), ": expected ", expected);
  }

  void AddOnce(const ModuleRow& module) {
    std::string& target = found_.*module.value;
    if (name_ == kPooling && (found_.has_token_head || !found_.mask.empty())) {
      Refuse("before modules for token vectors");
    }
    if (name_ == kPooling) RefuseAfterPooling();
    if (!target.empty()) Refuse("only once");
    if (&target != &found_.transformer) {
      if (found_.transformer.empty()) Refuse("after a Transformer");
    } else if (target.empty()) {
      found_.is_static = name_ == kStatic;
      found_.is_sparse_static = name_ == kSparseStatic;
      found_.transformer_pools =
          name_ == kClipModel || (name_ != kStatic && name_ != kSparseStatic && MakesVectors());
    }
    target = path_;
  }

  void RefuseAfterPooling() {
    if (found_.transformer_pools) Refuse("after a Transformer that does not pool by itself");
  }

  // Returns the name of the vectors that the module reads and changes in place.
  std::string ReadVectors(const std::string& fallback) {
    const std::string path = absl::StrCat(path_, "/config.json");
    if (path_ == folder_) return fallback;  // a module without a folder of its own
    std::string input = fallback;
    problems_.AddError(ReadConfigOrDefaults(path, [&](ConfigReader& config) {
      input = config.Text({"module_input_name"}, fallback);
      const std::string output = config.Text({"module_output_name"}, input);
      if (input != kPooledVectors && input != kTokenVectors) {
        config.Refuse("module_input_name: expected '", kPooledVectors, "' or '", kTokenVectors,
                      "'; got ", Quoted(input));
      } else if (output != input) {
        config.Refuse("module_output_name: expected '", input, "'; got ", Quoted(output));
      }
    }));
    return input;
  }

  // Whether the Transformer that is being added makes pooled vectors by its configuration.
  bool MakesVectors() {
    const std::string path = absl::StrCat(path_, "/sentence_bert_config.json");
    const absl::StatusOr<Json> json = PathExists(path) ? ReadJsonFile(path) : Json::object();
    problems_.AddError(json.status());
    return json.ok() && json->is_object() && TextAt(*json, "module_output_name") == kPooledVectors;
  }

  void AddDense() {
    const bool pools = found_.pools();
    const bool of_tokens = ReadVectors(pools ? kPooledVectors : kTokenVectors) == kTokenVectors;
    if (!of_tokens && !pools) Refuse("after a Pooling (its input is 'sentence_embedding')");
    if (of_tokens ? found_.normalizes_tokens : found_.normalize) Refuse("before Normalize");
    RefuseAfterPooling();
    found_.has_token_head |= of_tokens;
    (of_tokens ? found_.token_dense : found_.dense).push_back(path_);
  }

  void AddNormalize() {
    has_normalize_ = true;
    if (ReadVectors(kPooledVectors) == kTokenVectors) {
      found_.normalizes_tokens = found_.has_token_head = true;
    } else {
      // Without a vector the library's module does nothing.
      found_.normalize = found_.pools();
    }
  }

  const std::string& folder_;
  Problems& problems_;
  SentenceModules found_;
  bool has_normalize_ = false;
  std::string name_, path_;  // of the module that is being added
};

// Adds the modules that PyLate implements in code, like MultiVectorEncoder of the library.
absl::Status AddModulesOfPylate(const std::string& folder, SentenceModules& modules) {
  const std::string path = absl::StrCat(folder, "/config_sentence_transformers.json");
  return ReadConfigOrDefaults(path, [&](ConfigReader& config) {
    if (!IsPylate(config) || !modules.pooling.empty() || !modules.mask.empty()) return;
    modules.mask = path;
    modules.mask_kind = MaskFile::kPylate;
    modules.normalizes_tokens = modules.has_token_head = true;
  });
}

}  // namespace

SentenceModules ModulesOfStanford(const std::string& folder) {
  SentenceModules modules;
  modules.transformer = folder;
  modules.has_token_head = modules.normalizes_tokens = modules.is_stanford = true;
  modules.mask = absl::StrCat(folder, "/", kStanfordMetadata);
  modules.mask_kind = MaskFile::kStanford;
  return modules;
}

bool IsPylate(ConfigReader& sentence_config) {
  const std::string type = sentence_config.Text({"model_type"}, "");
  return type == "ColBERT" ||
         (type.empty() && sentence_config.Has({"query_prefix", "document_prefix"}));
}

absl::StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder,
                                                                   const std::string& route) {
  const std::string path = absl::StrCat(folder, "/modules.json");
  if (!PathExists(path)) {
    if (route.empty()) return std::optional<SentenceModules>();
    return InvalidArgument(folder, ": route: not supported (there is no modules.json); got ",
                           Quoted(route));
  }
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  Problems problems(path);
  if (!json.is_array() || static_cast<int64_t>(json.size()) > kMostModules) {
    problems.Add("expected a list of at most ", kMostModules, " modules");
    return problems.ToStatus();
  }
  ModuleList list(folder, problems);
  const Json entries = WithoutRouter(folder, json, route, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  for (const Json& entry : entries) list.Add(entry);
  SentenceModules modules = list.Finish();
  RETURN_IF_ERROR(problems.ToStatus());
  RETURN_IF_ERROR(AddModulesOfPylate(folder, modules));
  return std::optional<SentenceModules>(std::move(modules));
}

}  // namespace attendant
