// The settings of sentence-transformers that are refused because they are not applied, which
// sentence_transformers.h declares.
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

using Texts = absl::Span<const char* const>;

constexpr char kGeneration[] = "text-generation";  // of a reranker, which has its own template
constexpr const char* kTasks[] = {"feature-extraction", "fill-mask", "sequence-classification",
                                  kGeneration};
constexpr const char* kOutputs[] = {"token_embeddings", "sentence_embedding", "scores",
                                    "causal_logits"};
constexpr const char* kMethods[] = {"forward", "get_text_features"};  // the latter of a tower
constexpr const char* kMethodOutputs[] = {"last_hidden_state", "pooler_output", "logits"};
// The keys under which the arguments of the model, its tokenizer and its config are, and those
// arguments that change no result.
constexpr const char* kArguments[] = {"model_args",       "model_kwargs", "tokenizer_args",
                                      "processor_kwargs", "config_args",  "config_kwargs"};
constexpr absl::string_view kHarmlessArguments =
    "trust_remote_code torch_dtype dtype attn_implementation revision code_revision token "
    "use_auth_token cache_dir local_files_only device_map low_cpu_mem_usage use_safetensors "
    "use_fast add_pooling_layer";

void CheckText(const std::string& key, Texts known, ConfigReader& config,
               const std::string& path = "") {
  const std::string found = config.Text({key}, known.front());
  if (absl::c_linear_search(known, found)) return;
  config.Refuse(path, key, ": expected ", absl::StrJoin(known, ", "), "; got ", Quoted(found));
}

// The library renders texts by a chat template if a model takes messages.
void CheckModalities(bool generates, ConfigReader& config) {
  const Json* modalities = config.Object({"modality_config"});
  if (modalities == nullptr) return;
  if (modalities->contains("message") && !generates) {
    config.Refuse(
        "modality_config: message: not supported: chat templates are not evaluated; save the "
        "model with only the modality text");
  }
  const Json text = modalities->value("text", Json());
  if (!text.is_object()) return;
  ConfigReader reader(text, config.problems());
  CheckText("method", kMethods, reader, "modality_config.text.");
  CheckText("method_output_name", kMethodOutputs, reader, "modality_config.text.");
}

}  // namespace

void CheckTransformerSettings(ConfigReader& config) {
  CheckText("transformer_task", kTasks, config);
  CheckText("module_output_name", kOutputs, config);
  const bool generates = config.Text({"transformer_task"}, "") == kGeneration;
  CheckModalities(generates, config);
  const Keys harmless = absl::StrSplit(kHarmlessArguments, ' ');
  for (const char* key : kArguments) {
    const Json* arguments = config.Object({key});
    if (arguments == nullptr) continue;
    for (const auto& [name, value] : arguments->items()) {
      if (value.is_null() || absl::c_linear_search(harmless, name)) continue;
      config.Refuse(key, ": ", Quoted(name), " not supported: its effect on texts or ",
                    "weights is unknown");
    }
  }
  const Json* processing = config.Object({"processing_kwargs"});
  if (processing == nullptr) return;
  for (const auto& [name, value] : processing->items()) {
    if (value.empty() || (generates && name == "chat_template")) continue;
    config.Refuse("processing_kwargs: ", Quoted(name), " not supported");
  }
}

void CheckModelSettings(ConfigReader& config) {
  if (config.Has({"truncate_dim"})) {
    config.Refuse(
        "truncate_dim: not supported: vectors keep their width; remove it, and ask for "
        "`dimensions` in requests");
  }
  if (config.Has({"max_active_dims"})) {
    config.Refuse(
        "max_active_dims: not supported: sparse vectors keep all of their weights; remove it");
  }
}

}  // namespace attendant
