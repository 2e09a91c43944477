// Families of causal decoders without cross-attention, which serve as encoders: the vector of the
// last token, or of all of them where a model was trained on without the mask. EuroBERT is one of
// them by its layers, and never has a mask.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

NamePatterns LlamaNames() {
  return JoinNames(
      {LayerNames("layers.{i}.",
                  {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                   "input_layernorm", "mlp.up_proj", "mlp.down_proj", "post_attention_layernorm"}),
       {{"embeddings.word", "embed_tokens.weight"},
        {"layer.{i}.feed_forward_gate", "layers.{i}.mlp.gate_proj"},
        {"exit_norm", "norm"},
        {"classifier.dense", "/score"}}});
}

// The norms of queries and keys of Qwen 3 and Gemma 3.
NamePatterns HeadNormNames() {
  return {{"layer.{i}.query_norm", "layers.{i}.self_attn.q_norm"},
          {"layer.{i}.key_norm", "layers.{i}.self_attn.k_norm"}};
}

Family Llama() {
  Family family = {
      .name = "llama",
      .model_types = {"llama"},
      .architectures = {"Llama"},
      .prefixes = {"model.", "transformer."},
      .parts = {"embed_tokens.", "layers.", "norm."},
      .classifier_modes = {PoolingMode::kLastToken},
      .keys = {.key_value_heads = {"num_key_value_heads"},
               .norm_epsilon = {"rms_norm_eps"},
               .positions = {},
               .rotary_theta = {"rope_theta"}},
      .fixed_keys = {{"partial_rotary_factor", 1}},
      .harmless_keys = {"attention_bias", "max_position_embeddings", "mlp_bias", "pretraining_tp"},
      .has_every_bias = false,
      .norm_epsilon = 1e-6f,
      .feed_forward_kinds = GatedKinds("silu"),
      .norm_placement = NormPlacement::kPre,
      .norm_kind = NormKind::kRms,
      .has_own_head_width = true,
      .has_embedding_norm = false,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 10000,
      .scales_rotary = true,
      .names = LlamaNames(),
      .token_head_names = {{"token_head.dense", "/score"}, {"token_head.dense", "/qa_outputs"}},
  };
  family.is_causal = true;
  return family;
}

Family Mistral() {
  Family family = Like(Llama(), "mistral", "Mistral");
  family.keys.causal_window = {"sliding_window"};
  family.causal_window = 4096;
  return family;
}

Family Qwen2() {
  Family family = Like(Llama(), "qwen2", "Qwen2");
  family.keys.causal_window = {"sliding_window"};
  family.keys.has_causal_window = {"use_sliding_window"};
  family.keys.first_windowed = {"max_window_layers"};
  family.keys.layer_kinds = {"layer_types"};
  family.causal_window = 4096;
  return family;
}

Family Qwen3() {
  Family family = Like(Qwen2(), "qwen3", "Qwen3");
  family.head_width = 128;
  family.query_key_norms = QueryKeyNorms::kEachHead;
  family.names = JoinNames({LlamaNames(), HeadNormNames()});
  return family;
}

// The text model of Gemma 3, on which EmbeddingGemma is built.
Family Gemma3() {
  Family family = Like(Llama(), "gemma3_text", "Gemma3Text");
  family.keys.activation = {"hidden_activation"};
  family.keys.score_width = {"query_pre_attn_scalar"};
  family.keys.causal_window = {"sliding_window"};
  family.keys.layer_kinds = {"layer_types"};
  family.keys.last_of_period = {"sliding_window_pattern"};
  family.keys.local_rotary_theta = {"rope_local_base_freq"};
  family.fixed_keys = {{"partial_rotary_factor", 1},
                       {"attn_logit_softcapping", nullptr, "scores are not capped"},
                       {"is_causal", true, "use_bidirectional_attention decides in this family"}};
  family.harmless_keys = {"attention_bias", "cache_implementation", "final_logit_softcapping",
                          "max_position_embeddings"};
  family.feed_forward_kinds = GatedKinds("gelu_pytorch_tanh");
  family.norm_placement = NormPlacement::kSandwich;
  family.norm_kind = NormKind::kRmsPlusOne;
  family.head_width = 256;
  family.causal_window = 4096;
  family.halves_window = true;
  family.query_key_norms = QueryKeyNorms::kEachHead;
  family.scales_words = true;
  family.rotary_theta = 1e6f;
  family.local_rotary_theta = 10000;
  family.scales_local_rotary = false;
  family.names = JoinNames(
      {LlamaNames(),
       HeadNormNames(),
       {{"layer.{i}.attention_branch_norm", "layers.{i}.post_attention_layernorm"},
        {"layer.{i}.feed_forward_norm", "layers.{i}.pre_feedforward_layernorm"},
        {"layer.{i}.feed_forward_branch_norm", "layers.{i}.post_feedforward_layernorm"}}});
  return family;
}

Family EuroBert() {
  Family family = Like(Llama(), "eurobert", "EuroBert");
  family.is_causal = false;
  family.norm_epsilon = 1e-5f;
  family.names = JoinNames({LlamaNames(), ClassifierNames("/dense", "/classifier")});
  family.classifier_modes = {PoolingMode::kLateMean};
  family.classifier_activation = Activation::kGelu;
  family.token_head_names = {{"token_head.dense", "/classifier"}};
  family.keys.classifier_pooling = {"classifier_pooling", "clf_pooling"};
  family.fixed_keys.push_back({"is_causal", false, "its tokens attend to later tokens"});
  family.harmless_keys.push_back("hidden_dropout");
  return family;
}

}  // namespace

std::vector<Family> CausalFamilies() {
  return {Qwen3(), Qwen2(), Llama(), Mistral(), Gemma3(), EuroBert()};
}

}  // namespace attendant
