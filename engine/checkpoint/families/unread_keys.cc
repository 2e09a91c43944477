#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/families/config_parts.h"

namespace attendant {
namespace {

// Keys of PreTrainedConfig in versions 4 and 5 of the library, of its text configs, and of training
// tools. Pruned heads follow from the shapes of the remaining weights.
constexpr absl::string_view kOfEveryFamily =
    "add_pooling_layer architectures attention_dropout attention_probs_dropout_prob "
    "attn_implementation auto_map bad_words_ids begin_suppress_tokens bos_token_id "
    "chunk_size_feed_forward classifier_dropout classifier_dropout_prob cls_dropout cls_token_id "
    "cross_attention_hidden_size custom_pipelines decoder_start_token_id directionality "
    "diversity_penalty do_sample dropout dropout_rate dtype early_stopping "
    "encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty finetuning_task "
    "forced_bos_token_id forced_eos_token_id gradient_checkpointing hidden_dropout_prob id2label "
    "initializer_cutoff_factor initializer_factor initializer_range is_encoder_decoder label2id "
    "language length_penalty mask_token_id matryoshka_dimensions max_length max_seq_length "
    "min_length mlm_probability model_max_length model_type name no_repeat_ngram_size "
    "num_beam_groups num_beams num_labels num_return_sequences output_attentions "
    "output_hidden_states output_past output_scores pad_token_id pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix "
    "problem_type pruned_heads reference_compile remove_invalid_values repetition_penalty "
    "return_dict return_dict_in_generate sbert_ce_default_activation_function "
    "sentence_transformers sep_token_id suppress_tokens task_specific_params temperature "
    "tf_legacy_loss tie_encoder_decoder tie_word_embeddings tokenizer_class top_k top_p "
    "torch_dtype torchscript transformers_version typical_p unk_token_id unsloth_fixed "
    "unsloth_version use_bfloat16 use_cache use_return_dict vocab_file";

constexpr absl::string_view kComputations[] = {"rope", "rotary", "alibi", "moe", "expert"};

// Keys that begin with "_" are the library's notes. The pooling of a classification head has no
// effect on other architectures.
bool IsHarmless(const Family& family, const std::string& key) {
  static const auto& of_every_family = *new Keys(Words(kOfEveryFamily));
  return absl::StartsWith(key, "_") || absl::c_linear_search(family.harmless_keys, key) ||
         absl::c_linear_search(family.keys.classifier_pooling, key) ||
         absl::c_linear_search(of_every_family, key);
}

bool NamesComputation(const std::string& key) {
  return absl::c_any_of(kComputations,
                        [&](absl::string_view word) { return absl::StrContains(key, word); });
}

}  // namespace

void JudgeUnreadKeys(const Family& family, const ConfigReader& config,
                     std::vector<std::string>& warnings) {
  Keys unknown;
  for (const std::string& key : config.Unread()) {
    if (IsHarmless(family, key)) continue;
    if (NamesComputation(key)) {
      config.Refuse(key, ": not supported by the family ", family.name);
    } else {
      unknown.push_back(key);
    }
  }
  if (unknown.empty()) return;
  warnings.push_back(
      absl::StrCat("config.json has keys that the family ", family.name,
                   " does not know and that have no effect here: ", absl::StrJoin(unknown, ", ")));
}

}  // namespace attendant
