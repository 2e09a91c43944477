#include "engine/checkpoint/hugging_face.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/families/causal_config.h"
#include "engine/checkpoint/families/derived_weights.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/late_interaction/query_expansion.h"
#include "engine/checkpoint/late_interaction/stanford_colbert.h"
#include "engine/checkpoint/logit_score.h"
#include "engine/checkpoint/m3_heads.h"
#include "engine/checkpoint/read_classes.h"
#include "engine/checkpoint/read_tokenization.h"
#include "engine/checkpoint/sentence_transformers.h"
#include "engine/checkpoint/task_adapters.h"

namespace attendant {
namespace {

// Constants that old versions of the library saved along with the weights.
constexpr const char* kBuffers[] = {".position_ids", ".token_type_ids", ".inv_freq"};

bool HasAny(absl::Span<const TensorPart> places, const WeightBinder& binder) {
  return FindFirst(places, binder) != nullptr;
}

// Returns what precedes the encoder's tensor names in this file: nothing, or the name that a model
// with a head gives its encoder.
std::string FindPrefix(const Family& family, const WeightBinder& binder) {
  for (const std::string& prefix : family.prefixes) {
    const auto has_layers = [&](const std::string& before) {
      return HasAny(PlacesInFile(family, before, "layer.0.output.weight"), binder) ||
             HasAny(PlacesInFile(family, before, "layer.0.feed_forward_out.weight"), binder);
    };
    if (!has_layers("") && has_layers(prefix)) return prefix;
  }
  return "";
}

bool HasPooler(const Family& family, const std::string& prefix, const WeightBinder& binder) {
  return !family.pooler.empty() &&
         HasAny(PlacesInFile(family, prefix, "pooling.dense.weight"), binder);
}

// Makes the pooling of a checkpoint without modules, which is its pooler or none, the chosen one.
absl::Status ChoosePooling(const std::string& folder, PoolingChoice choice,
                           ModelDescription& model) {
  if (const std::optional<PoolingMode> mode = ModeOf(choice)) model.pooling = {.modes = {*mode}};
  if (choice != PoolingChoice::kPooler || model.pooling) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": pooling=pooler: not supported: the checkpoint has no pooler; use mean"));
}

// Pools as the checkpoint's own pooler does; or by the last token, as sentence-transformers pools a
// causal language model without modules.
void TakeOwnPooling(ModelConfig& config, const std::string& prefix, const WeightBinder& binder,
                    ModelDescription& model) {
  const bool has_layer = HasPooler(*config.family, prefix, binder);
  if (has_layer || config.family->pools_without_layer) {
    if (!has_layer) config.pooler.dense_width = 0;
    model.pooling = std::move(config.pooler);
  } else if (config.is_language_model && model.layer.attention.causal) {
    model.pooling = {.modes = {PoolingMode::kLastToken}};
  }
}

// What is opened: the folder, its parts, and the beginning of the names of the encoder's tensors.
struct FoundFiles {
  const std::string& folder;
  const std::string& transformer;
  const std::string& prefix;
  const std::optional<SentenceModules>& modules;
  const CheckpointOptions& options;
};

absl::Status ReadHeadsOfModules(const FoundFiles& found, ModelConfig& config,
                                Checkpoint& checkpoint, WeightBinder& binder) {
  const SentenceModules& modules = *found.modules;
  if (modules.transformer_pools) {
    TakeOwnPooling(config, found.prefix, binder, checkpoint.description);
    if (!checkpoint.description.pooling) {
      return absl::InvalidArgumentError(absl::StrCat(
          found.folder, "/modules.json: expected a model with a pooler (its Transformer outputs ",
          "sentence_embedding), found none in the family ", config.family->name));
    }
  }
  absl::Status status = ReadSentenceHeads(modules, found.options, checkpoint.description, binder);
  checkpoint.tokenization.is_multi_vector = checkpoint.description.token_head.has_value();
  if (!status.ok() || !modules.mask) return status;
  return ReadMultiVectorMask(*modules.mask, checkpoint.tokenization, checkpoint.warnings);
}

// Decides how texts are pooled, for a folder without modules: sentence-transformers takes their
// mean. A head that scores classes brings its own pooling.
void ChooseTextPooling(const std::string& folder, PoolingChoice choice, const Family& family,
                       Checkpoint& checkpoint) {
  const ModelDescription& model = checkpoint.description;
  Tokenization& tokenization = checkpoint.tokenization;
  tokenization.texts_take_mean = choice == PoolingChoice::kAsFiles && model.embeddings &&
                                 !family.texts_take_pooler && !model.classifier &&
                                 !model.token_head && !model.lexical_head &&
                                 !(model.pooling && model.layer.attention.causal);
  if (!tokenization.texts_take_mean || tokenization.tokenizer_json.empty()) return;
  checkpoint.warnings.push_back(absl::StrCat(
      folder, ": no modules.json: the vector of a text is the mean of its tokens, as ",
      "sentence-transformers makes it",
      model.pooling ? "; MODEL_POOLING of token ids is that of the pooler" : "",
      "; the option pooling=mean", model.pooling ? " or pooling=pooler" : "", " decides for both"));
}

// Has texts padded to all positions of the model.
void PadTexts(const Family& family, Checkpoint& checkpoint) {
  Tokenization& tokenization = checkpoint.tokenization;
  const auto pad = tokenization.special_tokens.find("pad");
  const int64_t id = pad != tokenization.special_tokens.end() ? pad->second : family.padding_id;
  tokenization.padding.length = checkpoint.description.embeddings->longest_sequence();
  tokenization.padding.id = static_cast<int32_t>(id);
}

// The weights of a head, by their canonical names' beginning, and what its first linear layer
// takes.
struct HeadOf {
  std::string name;
  std::vector<PoolingMode> modes;
};

// Describes a head that scores classes, if the files hold all of its weights.
std::optional<PoolingDescription> DescribeHead(const HeadOf& of, const ModelConfig& config,
                                               const std::string& prefix, Activation of_layers,
                                               const WeightBinder& binder) {
  const Family& family = *config.family;
  PoolingDescription head;
  head.modes = of.modes;
  for (auto [part, width] : {std::pair{".dense.weight", &head.dense_width},
                             std::pair{".output.weight", &head.output_width}}) {
    const std::vector<TensorPart> places = PlacesInFile(family, prefix, of.name + part);
    if (places.empty()) continue;
    const FileTensor* tensor = FindFirst(places, binder);
    if (tensor == nullptr || tensor->shape.size() != 2) return std::nullopt;
    *width = tensor->shape[0];
  }
  if (head.dense_width == 0) return std::nullopt;
  if (head.output_width > 0) {
    head.dense_activation = config.classifier_activation.value_or(
        family.classifier_acts_as_layers ? of_layers : family.classifier_activation);
  }
  head.has_dense_norm =
      HasAny(PlacesInFile(family, prefix, of.name + ".dense_norm.weight"), binder);
  return head;
}

// Whether the model is to rank by two logits: by its modules, or as the operator says.
bool AsksForLogitScore(const std::optional<SentenceModules>& modules,
                       const CheckpointOptions& options) {
  return modules ? !modules->logit_score.empty() : options.pooling == PoolingChoice::kYesNo;
}

ClassCounts CountClasses(const ModelConfig& config, const ModelDescription& model) {
  const auto count = [&](const std::optional<PoolingDescription>& head) {
    return head ? head->width(model.layer.hidden_size) : 0;
  };
  return {.of_sequences = count(model.classifier),
          .of_tokens = config.has_token_head ? count(model.token_head) : 0};
}

// Describes the heads that score classes of sequences and of tokens.
void AddHeads(const std::string& folder, const ModelConfig& config, const std::string& prefix,
              const WeightBinder& binder, Checkpoint& checkpoint) {
  const Family& family = *config.family;
  ModelDescription& model = checkpoint.description;
  const auto describe = [&](const HeadOf& head) {
    return DescribeHead(head, config, prefix, model.layer.feed_forward.activation, binder);
  };
  const bool scores_sequences = !config.classifier_modes.empty();
  if (scores_sequences && PlacesInFile(family, prefix, "classifier.dense.weight").empty()) {
    checkpoint.warnings.push_back(absl::StrCat(
        folder, ": the head that scores classes is left out, because it is not computed for the ",
        "family ", family.name));
  } else if (scores_sequences) {
    model.classifier = describe({"classifier", config.classifier_modes});
  }
  if (config.has_token_head && model.embeddings && !model.token_head) {
    model.token_head = describe({"token_head", {}});
  }
}

// Finds norms that only some models of a family have and that no config mentions.
void DescribeNorms(const Family& family, const std::string& prefix, const WeightBinder& binder,
                   ModelDescription& model) {
  const auto has = [&](const std::string& name) {
    return HasAny(PlacesInFile(family, prefix, name + ".weight"), binder) ||
           HasAny(PlacesInFile(family, prefix, name + ".bias"), binder);
  };
  const bool norms_all_heads = family.query_key_norms == QueryKeyNorms::kNone &&
                               (has("layer.0.query_norm") || has("layer.0.key_norm"));
  const bool has_second = has("layer.0.second_attention_norm");
  model.ChangeShapes([&](LayerShape& layer) {
    if (norms_all_heads) layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
    layer.extras.has_second_attention_norm = has_second;
  });
}

bool StartsWithAny(absl::string_view name, absl::Span<const std::string> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](absl::string_view start) { return absl::StartsWith(name, start); });
}

bool IsOfEncoder(const Family& family, const std::string& prefix, absl::string_view name) {
  if (!absl::ConsumePrefix(&name, prefix)) return false;
  if (!family.pooler.empty() && absl::StartsWith(name, family.pooler)) return false;
  if (StartsWithAny(name, family.others)) return false;
  return !prefix.empty() || StartsWithAny(name, family.parts);
}

bool IsBuffer(absl::string_view name) {
  return std::any_of(std::begin(kBuffers), std::end(kBuffers),
                     [&](absl::string_view buffer) { return absl::EndsWith(name, buffer); });
}

// Returns the name of the corresponding weight of layer 0.
std::string OfLayerZero(const std::string& canonical) {
  absl::string_view rest = canonical;
  if (!absl::ConsumePrefix(&rest, "layer.")) return canonical;
  return absl::StrCat("layer.0", rest.substr(rest.find('.')));
}

// Heads whose weights are bound already.
struct BoundHeads {
  const std::optional<SentenceModules>& modules;
  bool has_classifier;
};

void BindAll(const Checkpoint& checkpoint, const Family& family, const std::string& prefix,
             const BoundHeads& bound, WeightBinder& binder) {
  // Those of the modules, and of files beside them, are bound already.
  const bool has_pooling = bound.modules && !bound.modules->dense.empty();
  const bool has_token_head = checkpoint.tokenization.is_multi_vector;
  for (WeightSpec& spec : ListWeights(checkpoint.description)) {
    if (has_pooling && absl::StartsWith(spec.name, "pooling.")) continue;
    if (has_token_head && absl::StartsWith(spec.name, "token_head.")) continue;
    if (absl::StartsWith(spec.name, "lexical_head.")) continue;
    if (bound.has_classifier && absl::StartsWith(spec.name, "classifier.")) continue;
    if (spec.optional && family.biases == Biases::kAsInFile) {
      spec.optional = !HasAny(PlacesInFile(family, prefix, OfLayerZero(spec.name)), binder);
    } else {
      spec.optional = IsDerived(family, spec.name);
    }
    const std::vector<TensorPart> places = PlacesInFile(family, prefix, spec.name);
    spec.shape = ShapeInFiles(spec, checkpoint.description, FindFirst(places, binder));
    BindWeight(spec, places, checkpoint.description.layer, binder);
  }
  BindDerivedWeights(family, prefix, checkpoint.description, binder);
}

void SortOutTheRest(const Family& family, const std::string& prefix, WeightBinder& binder,
                    std::vector<std::string>& unused) {
  for (std::string& name : binder.Unbound()) {
    if (absl::StartsWith(name, kDensePrefix) ||
        (IsOfEncoder(family, prefix, name) && !IsBuffer(name) && !IsOfTaskAdapter(name))) {
      binder.problems().Add(
          absl::StrCat(binder.Show(name), ": expected no tensor of that name in this model"));
    } else if (!IsBuffer(name)) {
      unused.push_back(std::move(name));
    }
  }
}

absl::Status ReadHeads(const FoundFiles& found, ModelConfig& config, WeightBinder& binder,
                       Checkpoint& checkpoint) {
  absl::Status status;
  if (found.modules) {
    status = ReadHeadsOfModules(found, config, checkpoint, binder);
  } else {
    TakeOwnPooling(config, found.prefix, binder, checkpoint.description);
    status = ChoosePooling(found.folder, found.options.pooling, checkpoint.description);
  }
  if (!status.ok()) return status;
  AddHeads(found.transformer, config, found.prefix, binder, checkpoint);
  const bool ranks = AsksForLogitScore(found.modules, found.options);
  if (ranks) {
    const std::string score = found.modules ? found.modules->logit_score + "/config.json" : "";
    status = AddLogitScore(found.transformer, score,
                           PlacesInFile(*config.family, found.prefix, "embeddings.word"),
                           checkpoint, binder);
    if (!status.ok()) return status;
  }
  status = ReadClasses(found.folder, found.transformer,
                       CountClasses(config, checkpoint.description), checkpoint.tokenization);
  if (status.ok()) {
    status = AddVocabularyHead(config, found.prefix, found.modules, binder, checkpoint.description);
  }
  if (status.ok()) {
    status = AddM3Heads(found.folder, found.options, found.modules.has_value(), checkpoint, binder);
  }
  if (!status.ok()) return status;
  if (!found.modules) {
    ChooseTextPooling(found.folder, found.options.pooling, *config.family, checkpoint);
  }
  return SettleQueryExpansion(found.folder, checkpoint.description,
                              found.modules && found.modules->mask, checkpoint.tokenization);
}

// Moves all that is bound into the checkpoint, with the adapter of a task if the options name one.
absl::Status Finish(const std::string& folder, const Family& family, const std::string& prefix,
                    const CheckpointOptions& options, WeightBinder& binder,
                    Checkpoint& checkpoint) {
  std::optional<TaskAdapter> adapter;
  if (!options.task.empty()) {
    absl::StatusOr<TaskAdapter> read = TaskAdapter::Read(folder, options.task);
    if (!read.ok()) return read.status();
    adapter = *std::move(read);
    adapter->Bind(binder);
  } else if (const std::vector<std::string> tasks = ListTasks(folder); !tasks.empty()) {
    checkpoint.warnings.push_back(absl::StrCat(
        folder, ": no adapter is merged; the option task=", absl::StrJoin(tasks, ", task="),
        " merges that of a task"));
  }
  SortOutTheRest(family, prefix, binder, checkpoint.unused_tensors);
  absl::Status status = binder.Finish(options, checkpoint);
  if (status.ok()) status = AddDerivedWeights(family, checkpoint);
  return status.ok() && adapter ? adapter->AddTo(checkpoint) : status;
}

// Modules may be code of the folder's authors, which is not run.
absl::Status CheckOwnCode(const std::string& folder, const Family& family,
                          const std::optional<SentenceModules>& modules) {
  if (!modules || modules->own_code.empty() || modules->own_code == family.own_transformer) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(folder, "/modules.json: type: expected Transformer of sentence_transformers, ",
                   "found ", Quoted(modules->own_code)));
}

}  // namespace

absl::Status OpenHuggingFace(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint) {
  absl::StatusOr<std::optional<SentenceModules>> modules =
      ReadSentenceModules(folder, options.route);
  if (!modules.ok()) return modules.status();
  if (!*modules && IsStanfordColbert(folder)) *modules = ModulesOfStanford(folder);
  if (*modules && (*modules)->is_sparse_static) {
    return OpenSparseStaticEmbedding(folder, **modules, options, checkpoint);
  }
  if (*modules ? (*modules)->is_static : IsModel2Vec(folder)) {
    return OpenStaticEmbedding(folder, *modules, options, checkpoint);
  }
  const std::string transformer = *modules ? (*modules)->transformer : folder;
  absl::StatusOr<ModelConfig> config = ReadModelConfig(transformer, options.tower);
  if (!config.ok()) return config.status();
  const Family& family = *config->family;
  absl::Status status = CheckOwnCode(folder, family, *modules);
  if (!status.ok()) return status;
  checkpoint.description = std::move(config->description);
  status = ChooseCausality(folder, options.causal, family, checkpoint.description);
  if (!status.ok()) return status;
  checkpoint.warnings = std::move(config->warnings);
  absl::StatusOr<Tokenization> tokenization =
      ReadTokenization(folder, transformer, checkpoint.warnings);
  if (!tokenization.ok()) return tokenization.status();
  checkpoint.tokenization = *std::move(tokenization);
  if (family.pads_texts) PadTexts(family, checkpoint);

  WeightBinder binder(folder);
  absl::StatusOr<WeightFiles> files = OpenWeightFiles(transformer, options);
  if (!files.ok()) return files.status();
  binder.AddFiles("", *std::move(files));
  const std::string prefix = FindPrefix(family, binder);

  const FoundFiles found = {folder, transformer, prefix, *modules, options};
  status = ReadHeads(found, *config, binder, checkpoint);
  if (!status.ok()) return status;
  DescribeNorms(family, prefix, binder, checkpoint.description);
  checkpoint.description.patch_embedding =
      DescribePatchEmbedding(family, prefix, checkpoint.description, binder);
  BindAll(checkpoint, family, prefix, {*modules, AsksForLogitScore(*modules, options)}, binder);
  return Finish(transformer, family, prefix, options, binder, checkpoint);
}

}  // namespace attendant
