#include "engine/checkpoint/hugging_face.h"

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_parts.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/late_interaction/multi_vector_mask.h"
#include "engine/checkpoint/late_interaction/text_lengths.h"
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

// Returns what precedes the encoder's tensor names in this file: nothing, or the name that a model
// with a head gives its encoder.
std::string FindPrefix(const Family& family, WeightBinder& binder) {
  for (const std::string& prefix : family.prefixes) {
    const auto has_layers = [&](const std::string& before) {
      const FamilyTensors tensors = {family, before, binder};
      return tensors.Has("layer.0.output.weight") || tensors.Has("layer.0.feed_forward_out.weight");
    };
    if (!has_layers("") && has_layers(prefix)) return prefix;
  }
  return "";
}

// Refuses files whose names have a prefix that is not the family's, such as the one of a wrapper of
// torch: every weight would be missing.
absl::Status CheckPrefix(const std::string& folder, const FamilyTensors& tensors) {
  if (tensors.Has("layer.0.output.weight")) return absl::OkStatus();
  for (const TensorPart& place : tensors.Places("layer.0.output.weight")) {
    for (const std::string& name : tensors.binder.Unbound()) {
      absl::string_view prefix = name;
      if (!absl::ConsumeSuffix(&prefix, absl::StrCat(".", place.name))) continue;
      return InvalidArgument(folder, ": tensor names: expected ", Quoted(place.name), "; got ",
                             Quoted(name), "; remove ", Quoted(absl::StrCat(prefix, ".")),
                             " from all of them");
    }
  }
  return absl::OkStatus();
}

// Makes the pooling of a checkpoint without modules, which is its pooler or none, the chosen one.
absl::Status ChoosePooling(const std::string& folder, PoolingChoice choice,
                           ModelDescription& model) {
  if (const std::optional<PoolingMode> mode = ModeOf(choice)) model.pooling = {.modes = {*mode}};
  if (choice != PoolingChoice::kPooler || model.pooling) return absl::OkStatus();
  return InvalidArgument(folder,
                         ": pooling=pooler: not supported: the checkpoint has no pooler; use mean");
}

// Pools as the checkpoint's own pooler does; or by the last token, as sentence-transformers pools a
// causal language model without modules.
void TakeOwnPooling(ModelConfig& config, const FamilyTensors& tensors, ModelDescription& model) {
  const Family& family = tensors.family;
  const bool has_layer = !family.pooler.empty() && tensors.Has("pooling.dense.weight");
  if (has_layer || family.pools_without_layer) {
    if (!has_layer) config.pooler.dense_width = 0;
    model.pooling = std::move(config.pooler);
  } else if (config.is_language_model && model.layer.attention.causal) {
    model.pooling = {.modes = {PoolingMode::kLastToken}};
  }
}

// The folder being opened, and its parts.
struct FoundFiles {
  const std::string& folder;
  const std::string& transformer;
  const std::optional<SentenceModules>& modules;
  const CheckpointOptions& options;
  const FamilyTensors& tensors;
};

absl::Status ReadHeadsOfModules(const FoundFiles& found, ModelConfig& config,
                                Checkpoint& checkpoint) {
  const SentenceModules& modules = *found.modules;
  ModelDescription& model = checkpoint.description;
  if (modules.transformer_pools) {
    TakeOwnPooling(config, found.tensors, model);
    if (!model.pooling) {
      return InvalidArgument(
          found.folder, "/modules.json: requires a model with a pooler (its Transformer outputs ",
          "sentence_embedding), which the family ", config.family->name, " does not have");
    }
  }
  RETURN_IF_ERROR(ReadSentenceHeads(modules, found.options, model, found.tensors.binder));
  checkpoint.tokenization.is_multi_vector = model.token_head.has_value();
  if (modules.mask.empty()) return absl::OkStatus();
  return ReadMultiVectorMask(modules.mask, modules.mask_kind, checkpoint.tokenization,
                             checkpoint.warnings);
}

// Decides how texts are pooled, for a folder without modules: sentence-transformers takes their
// mean. A classification head has its own pooling.
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
      folder, ": no modules.json: the vector of a text is the mean of its tokens, as in ",
      "sentence-transformers", model.pooling ? "; MODEL_POOLING of token ids uses the pooler" : "",
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

// Lists the names in the files of these weights, as far as the family has them.
std::string ListPlaces(const FamilyTensors& tensors,
                       std::initializer_list<const char*> canonical_names) {
  std::vector<std::string> names;
  for (const char* canonical : canonical_names) {
    for (const TensorPart& place : tensors.Places(canonical)) names.push_back(Quoted(place.name));
  }
  return absl::StrJoin(names, ", ");
}

// Describes a head that scores classes, and that pools by these modes, if the files hold all of its
// weights.
std::optional<PoolingDescription> DescribeHead(const std::string& name,
                                               const std::vector<PoolingMode>& modes,
                                               const ModelConfig& config,
                                               const FamilyTensors& tensors,
                                               const ModelDescription& model) {
  PoolingDescription head;
  head.modes = modes;
  for (auto [part, width] : {std::pair{".dense.weight", &head.dense_width},
                             std::pair{".output.weight", &head.output_width}}) {
    if (tensors.Places(name + part).empty()) continue;
    const FileTensor* tensor = tensors.Find(name + part);
    if (tensor == nullptr || tensor->shape.size() != 2) return std::nullopt;
    if (absl::c_linear_search(tensor->shape, 0)) return std::nullopt;
    *width = tensor->shape[0];
  }
  if (head.dense_width == 0) return std::nullopt;
  if (head.output_width > 0) {
    const Activation of_family =
        tensors.family.classifier_activation.value_or(model.layer.feed_forward.activation);
    head.dense_activation = config.classifier_activation.value_or(of_family);
  }
  head.has_dense_norm = tensors.Has(name + ".dense_norm.weight");
  return head;
}

// Whether the model is to rank by two logits: by its modules, or as the operator says.
bool AsksForLogitScore(const std::optional<SentenceModules>& modules,
                       const CheckpointOptions& options) {
  return modules ? !modules->logit_score.empty() : options.pooling == PoolingChoice::kYesNo;
}

// Describes the heads that score classes of sequences and of tokens. Modules that make vectors do
// not use them.
void AddHeads(const FoundFiles& found, const ModelConfig& config, Checkpoint& checkpoint) {
  ModelDescription& model = checkpoint.description;
  if (found.modules && found.modules->pools()) return;
  const bool scores_sequences = !config.classifier_modes.empty();
  if (scores_sequences && found.tensors.Places("classifier.dense.weight").empty()) {
    checkpoint.warnings.push_back(
        absl::StrCat(found.transformer, ": the classification head is ignored, because it is not ",
                     "supported for the family ", config.family->name));
  } else if (scores_sequences) {
    model.classifier =
        DescribeHead("classifier", config.classifier_modes, config, found.tensors, model);
    if (model.classifier) {
      model.classifier->padding_id = config.classifier_padding_id;
    } else {
      checkpoint.warnings.push_back(absl::StrCat(
          found.transformer, ": no classification head: the files do not have all of its weights, ",
          ListPlaces(found.tensors, {"classifier.dense.weight", "classifier.output.weight"})));
    }
  }
  if (config.has_token_head && model.embeddings && !model.token_head) {
    model.token_head = DescribeHead("token_head", {}, config, found.tensors, model);
  }
  if (scores_sequences || model.token_head || config.head_architecture.empty()) return;
  checkpoint.warnings.push_back(
      absl::StrCat(found.transformer, ": the head of ", config.head_architecture,
                   " is ignored: it is not supported, or the files do not have its weights"));
}

// Finds norms that only some models of a family have and that no config mentions.
void DescribeNorms(const FamilyTensors& tensors, ModelDescription& model) {
  const auto has = [&](const std::string& name) {
    return tensors.Has(name + ".weight") || tensors.Has(name + ".bias");
  };
  const bool norms_all_heads = tensors.family.query_key_norms == QueryKeyNorms::kNone &&
                               (has("layer.0.query_norm") || has("layer.0.key_norm"));
  const bool has_second = has("layer.0.second_attention_norm");
  model.ChangeShapes([&](LayerShape& layer) {
    if (norms_all_heads) layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
    layer.extras.has_second_attention_norm = has_second;
  });
}

bool StartsWithAny(absl::string_view name, absl::Span<const std::string> starts) {
  return absl::c_any_of(starts,
                        [&](absl::string_view start) { return absl::StartsWith(name, start); });
}

bool IsOfEncoder(const FamilyTensors& tensors, absl::string_view name) {
  const Family& family = tensors.family;
  if (!absl::ConsumePrefix(&name, tensors.prefix)) return false;
  if (!family.pooler.empty() && absl::StartsWith(name, family.pooler)) return false;
  if (StartsWithAny(name, family.others)) return false;
  return !tensors.prefix.empty() || StartsWithAny(name, family.parts);
}

bool IsBuffer(absl::string_view name) {
  return absl::c_any_of(kBuffers,
                        [&](absl::string_view buffer) { return absl::EndsWith(name, buffer); });
}

// Returns the name of the corresponding weight of layer 0.
std::string OfLayerZero(const std::string& canonical) {
  absl::string_view rest = canonical;
  if (!absl::ConsumePrefix(&rest, "layer.")) return canonical;
  return absl::StrCat("layer.0", rest.substr(rest.find('.')));
}

void BindAll(const FoundFiles& found, const Checkpoint& checkpoint) {
  const FamilyTensors& tensors = found.tensors;
  // The weights of modules and of extra files are already bound.
  std::vector<std::string> bound = {"lexical_head."};
  if (found.modules && !found.modules->dense.empty()) bound.push_back("pooling.");
  if (checkpoint.tokenization.is_multi_vector) bound.push_back("token_head.");
  if (AsksForLogitScore(found.modules, found.options)) bound.push_back("classifier.");
  for (WeightSpec& spec : ListWeights(checkpoint.description)) {
    if (StartsWithAny(spec.name, bound)) continue;
    if (spec.optional && !tensors.family.has_every_bias) {
      spec.optional = !tensors.Has(OfLayerZero(spec.name));
    } else {
      spec.optional = IsDerived(tensors.family, spec.name);
    }
    spec.shape = ShapeInFiles(spec, checkpoint.description, tensors.Find(spec.name));
    BindWeight(spec, tensors.Places(spec.name), checkpoint.description.layer, tensors.binder);
  }
  BindDerivedWeights(tensors, checkpoint.description);
}

void SortOutTheRest(const FamilyTensors& tensors, std::vector<std::string>& unused) {
  for (std::string& name : tensors.binder.Unbound()) {
    if (absl::StartsWith(name, kDensePrefix) ||
        (IsOfEncoder(tensors, name) && !IsBuffer(name) && !IsOfTaskAdapter(name))) {
      tensors.binder.Refuse(tensors.binder.Show(name), ": unexpected in this model");
    } else if (!IsBuffer(name)) {
      unused.push_back(std::move(name));
    }
  }
}

// Without modules.json, the library renders texts by a chat template if there is one.
void WarnOfChatTemplate(const FoundFiles& found, Checkpoint& checkpoint) {
  const ModelDescription& model = checkpoint.description;
  if (!model.embeddings || model.token_head || found.options.pooling == PoolingChoice::kYesNo ||
      ReadChatTemplate(found.folder).empty()) {
    return;
  }
  checkpoint.warnings.push_back(absl::StrCat(
      found.folder, ": chat_template: not evaluated: texts are read as they are, as in the ",
      "pipelines of transformers; sentence-transformers renders them by the template"));
}

absl::Status ReadHeads(const FoundFiles& found, ModelConfig& config, Checkpoint& checkpoint) {
  ModelDescription& model = checkpoint.description;
  WeightBinder& binder = found.tensors.binder;
  if (found.modules) {
    RETURN_IF_ERROR(ReadHeadsOfModules(found, config, checkpoint));
  } else {
    TakeOwnPooling(config, found.tensors, model);
    RETURN_IF_ERROR(ChoosePooling(found.folder, found.options.pooling, model));
  }
  AddHeads(found, config, checkpoint);
  if (AsksForLogitScore(found.modules, found.options)) {
    const std::string score = found.modules ? found.modules->logit_score + "/config.json" : "";
    const auto words = found.tensors.Places("embeddings.word");
    RETURN_IF_ERROR(AddLogitScore(found.transformer, score, words, checkpoint, binder));
  }
  const auto count = [&](const std::optional<PoolingDescription>& head) {
    return head ? head->width(model.layer.hidden_size) : 0;
  };
  const ClassCounts classes = {
      .of_sequences = count(model.classifier),
      .of_tokens = config.has_token_head ? count(model.token_head) : 0,
  };
  RETURN_IF_ERROR(ReadClasses(found.folder, found.transformer, classes, checkpoint.tokenization));
  RETURN_IF_ERROR(AddVocabularyHead(config, found.modules, found.tensors, model));
  RETURN_IF_ERROR(
      AddM3Heads(found.folder, found.options, found.modules.has_value(), checkpoint, binder));
  if (!found.modules) {
    ChooseTextPooling(found.folder, found.options.pooling, *config.family, checkpoint);
    WarnOfChatTemplate(found, checkpoint);
  }
  return SettleQueryExpansion(found.folder, model, found.modules && !found.modules->mask.empty(),
                              checkpoint.tokenization);
}

// Moves all that is bound into the checkpoint, with the adapter of a task if the options name one.
absl::Status Finish(const FoundFiles& found, Checkpoint& checkpoint) {
  const std::string& folder = found.transformer;
  WeightBinder& binder = found.tensors.binder;
  TaskProducts adapter;
  if (!found.options.task.empty()) {
    ASSIGN_OR_RETURN(adapter, BindTaskAdapter(folder, found.options.task, binder));
  } else if (const std::vector<std::string> tasks = ListTasks(folder); !tasks.empty()) {
    checkpoint.warnings.push_back(absl::StrCat(folder, ": no adapter is merged; the option task=",
                                               absl::StrJoin(tasks, ", task="), " merges one"));
  }
  SortOutTheRest(found.tensors, checkpoint.unused_tensors);
  RETURN_IF_ERROR(binder.Finish(found.options, checkpoint));
  RETURN_IF_ERROR(AddDerivedWeights(found.tensors.family, checkpoint));
  return adapter.empty() ? absl::OkStatus() : AddTaskAdapter(std::move(adapter), checkpoint);
}

// Modules may be code of the folder's authors, which is not run.
absl::Status CheckOwnCode(const std::string& folder, const Family& family,
                          const std::optional<SentenceModules>& modules) {
  if (!modules || modules->own_code.empty() || modules->own_code == family.own_transformer) {
    return absl::OkStatus();
  }
  return InvalidArgument(folder,
                         "/modules.json: type: expected Transformer of sentence_transformers; got ",
                         Quoted(modules->own_code));
}

}  // namespace

absl::Status OpenHuggingFace(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(std::optional<SentenceModules> modules,
                   ReadSentenceModules(folder, options.route));
  if (!modules && IsStanfordColbert(folder)) modules = ModulesOfStanford(folder);
  if (modules && modules->is_sparse_static) {
    return OpenSparseStaticEmbedding(folder, *modules, options, checkpoint);
  }
  if (modules ? modules->is_static : IsModel2Vec(folder)) {
    return OpenStaticEmbedding(folder, modules, options, checkpoint);
  }
  const std::string transformer = modules ? modules->transformer : folder;
  ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(transformer, options.tower));
  const Family& family = *config.family;
  RETURN_IF_ERROR(CheckOwnCode(folder, family, modules));
  checkpoint.description = std::move(config.description);
  RETURN_IF_ERROR(ChooseCausality(folder, options.causal, family, checkpoint.description));
  checkpoint.warnings = std::move(config.warnings);
  ASSIGN_OR_RETURN(checkpoint.tokenization,
                   ReadTokenization(folder, transformer, checkpoint.warnings));
  if (family.pads_texts) PadTexts(family, checkpoint);

  WeightBinder binder(folder);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFiles(transformer, options)));
  const FamilyTensors tensors = {family, FindPrefix(family, binder), binder};
  RETURN_IF_ERROR(CheckPrefix(transformer, tensors));
  const FoundFiles found = {folder, transformer, modules, options, tensors};
  RETURN_IF_ERROR(ReadHeads(found, config, checkpoint));
  DescribeNorms(tensors, checkpoint.description);
  checkpoint.description.patch_embedding = DescribePatchEmbedding(tensors, checkpoint.description);
  BindAll(found, checkpoint);
  return Finish(found, checkpoint);
}

}  // namespace attendant
