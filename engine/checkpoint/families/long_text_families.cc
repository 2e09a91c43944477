// Families that read text of any length: positions enter in the attention, and the feed-forward
// block has a gate or experts.
#include "absl/strings/match.h"
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

NamePatterns NomicNames() {
  return JoinNames({BertEmbeddingNames(),
                    StackedInputs("encoder.layers.{i}.attn.Wqkv"),
                    {{"embeddings.norm", "emb_ln"},
                     {"layer.{i}.output", "encoder.layers.{i}.attn.out_proj"},
                     {"layer.{i}.attention_norm", "encoder.layers.{i}.norm1"},
                     {"layer.{i}.feed_forward_gate", "encoder.layers.{i}.mlp.fc12"},
                     {"layer.{i}.feed_forward_in", "encoder.layers.{i}.mlp.fc11"},
                     {"layer.{i}.feed_forward_in", "encoder.layers.{i}.mlp.fc1"},
                     {"layer.{i}.feed_forward_out", "encoder.layers.{i}.mlp.fc2"},
                     {"layer.{i}.router", "encoder.layers.{i}.mlp.router.layer"},
                     {.canonical = "layer.{i}.expert.{e}.feed_forward_in.weight",
                      .in_file = "encoder.layers.{i}.mlp.experts.mlp.w1",
                      .unit = RowUnit::kExpert},
                     {.canonical = "layer.{i}.expert.{e}.feed_forward_out.weight",
                      .in_file = "encoder.layers.{i}.mlp.experts.mlp.w2",
                      .unit = RowUnit::kExpert,
                      .transposed = true},
                     {"layer.{i}.experts_bias", "encoder.layers.{i}.mlp.experts.bias"},
                     {"layer.{i}.feed_forward_norm", "encoder.layers.{i}.norm2"},
                     {"pooling.dense", "pooler.dense"}},
                    ClassifierNames("pooler.dense", "/classifier")});
}

Family ModernBert() {
  return {
      .name = "modernbert",
      .model_types = {"modernbert"},
      .architectures = {"ModernBert"},
      .prefixes = {"model."},
      .parts = {"embeddings.", "layers.", "final_norm."},
      .classifier_activation = Activation::kGelu,
      .keys = {.activation = {"hidden_activation"},
               .norm_epsilon = {"norm_eps"},
               .positions = {},
               .rotary_theta = {"global_rope_theta"},
               .local_rotary_theta = {"local_rope_theta"},
               .window = {"local_attention"},
               .global_every = {"global_attn_every_n_layers"},
               .classifier_pooling = {"classifier_pooling"},
               .classifier_activation = {"classifier_activation"},
               .layer_kinds = {"layer_types"}},
      .fixed_keys = {{"partial_rotary_factor", 1},
                     {"sliding_window", nullptr, "local_attention sets the width of the window"}},
      .harmless_keys =
          Words("attention_bias classifier_bias decoder_bias deterministic_flash_attn "
                "embedding_dropout layer_norm_eps max_position_embeddings mlp_bias mlp_dropout "
                "norm_bias repad_logits_with_grad rope_theta sparse_pred_ignore_index "
                "sparse_prediction"),
      .position_embedding_types = {"absolute", "sans_pos"},
      .has_every_bias = false,
      .norm_epsilon = 1e-5f,
      .feed_forward_kinds = GatedKinds(),
      .norm_placement = NormPlacement::kPre,
      .has_first_attention_norm = false,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 160000,
      .local_rotary_theta = 10000,
      .scales_rotary = true,
      .names = JoinNames({StackedInputs("layers.{i}.attn.Wqkv"),
                          Stacked({"layer.{i}.feed_forward_gate", "layer.{i}.feed_forward_in"},
                                  "layers.{i}.mlp.Wi"),
                          {{"embeddings.word", "embeddings.tok_embeddings.weight"},
                           {"embeddings.norm", "embeddings.norm"},
                           {"layer.{i}.output", "layers.{i}.attn.Wo"},
                           {"layer.{i}.attention_norm", "layers.{i}.attn_norm"},
                           {"layer.{i}.feed_forward_out", "layers.{i}.mlp.Wo"},
                           {"layer.{i}.feed_forward_norm", "layers.{i}.mlp_norm"},
                           {"exit_norm", "final_norm"},
                           {"classifier.dense_norm", "/head.norm"}},
                          ClassifierNames("/head.dense", "/classifier")}),
      .token_head_names = {{"token_head.dense", "/head.dense"},
                           {"token_head.dense_norm", "/head.norm"},
                           {"token_head.output", "/classifier"}},
      .vocabulary_head_names = {{"vocabulary_head.dense", "/head.dense"},
                                {"vocabulary_head.dense_norm", "/head.norm"},
                                {"vocabulary_head.output", "/decoder"},
                                {"vocabulary_head.output.weight",
                                 "embeddings.tok_embeddings.weight"}},
  };
}

constexpr char kNomicHarmlessKeys[] =
    "attn_pdrop dense_seq_output embd_pdrop fused_bias_fc fused_dropout_add_ln "
    "max_position_embeddings max_trained_positions mlp_fc1_bias mlp_fc2_bias moe_every_n_layers "
    "moe_resid_pdrop moe_top_k n_positions pad_vocab_size_multiple parallel_block_tied_norm "
    "qkv_proj_bias reorder_and_upcast_attn resid_pdrop router_aux_loss_coef summary_activation "
    "summary_first_dropout summary_proj_to_labels summary_type summary_use_proj use_flash_attn "
    "use_xentropy";

Family NomicBert() {
  return {
      .name = "nomic_bert",
      .model_types = {"nomic_bert"},
      .architectures = {"NomicBert"},
      .prefixes = {"bert.", "nomic_bert."},
      .parts = {"embeddings.", "emb_ln.", "encoder."},
      .pooler = "pooler.",
      .keys = {.hidden_size = {"hidden_size", "n_embd"},
               .heads = {"num_attention_heads", "n_head"},
               .layers = {"num_hidden_layers", "n_layer"},
               .feed_forward_width = {"intermediate_size", "n_inner"},
               .activation = {"activation_function"},
               .gated_activation = {"hidden_act"},
               .experts = {"num_experts"},
               .experts_every = {"moe_every_n_layers"},
               .experts_per_token = {"moe_top_k"},
               .norm_epsilon = {"layer_norm_eps", "layer_norm_epsilon"},
               .positions = {},
               .token_types = {"type_vocab_size"},
               .rotary_theta = {"rotary_emb_base", "rope_theta"},
               .rotary_fraction = {"rotary_emb_fraction"},
               .rotary_interleaved = {"rotary_emb_interleaved"}},
      .fixed_keys = {{"prenorm", false},
                     {"parallel_block", false},
                     {"use_rms_norm", false},
                     {"causal", false},
                     {"rotary_scaling_factor", nullptr,
                      "its angles grow with the longest sequence of a batch, so that a "
                      "response would depend on other requests"},
                     {"rotary_emb_scale_base", nullptr},
                     {"partial_rotary_factor", 1},
                     {"scale_attn_weights", true},
                     {"scale_attn_by_inverse_layer_idx", false},
                     {"expert_choice_router", false, "tokens choose experts here"},
                     {"ffn_div", 1},
                     {"moe_impl", "megablocks"},
                     {"moe_normalize_expert_weights", false},
                     {"num_shared_experts", 0}},
      .harmless_keys = Words(kNomicHarmlessKeys),
      .position_embedding_types = {"rotary"},
      .has_every_bias = false,
      .feed_forward_kinds = {{"swiglu", {Activation::kSilu, true}},
                             {"geglu", {Activation::kGelu, true}},
                             {"gelu", {Activation::kGelu, false}},
                             {"relu", {Activation::kRelu, false}}},
      .has_own_head_width = true,
      .fewest_token_types = 0,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 1000,
      .scales_rotary = true,
      .names = NomicNames(),
  };
}

Family Gte() {
  return {
      .name = "gte",
      .model_types = {"gte"},
      .architectures = {"Gte"},
      .prefixes = {"gte.", "new."},
      .parts = {"embeddings.", "encoder."},
      .pooler = "pooler.",
      .keys = {.positions = {}, .token_types = {"type_vocab_size"}, .rotary_theta = {"rope_theta"}},
      .fixed_keys = {{"layer_norm_type", "layer_norm"},
                     {"logn_attention_scale", false},
                     {"logn_attention_clip1", false},
                     {"partial_rotary_factor", 1}},
      .harmless_keys = {"max_position_embeddings", "pack_qkv", "unpad_inputs",
                        "use_memory_efficient_attention"},
      .position_embedding_types = {"rope"},
      .has_every_bias = false,
      .feed_forward_kinds = GatedKinds(),
      .has_own_head_width = true,
      .fewest_token_types = 0,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 160000,
      .scales_rotary = true,
      .names = JoinNames({BertEmbeddingNames(),
                          StackedInputs("encoder.layer.{i}.attention.qkv_proj"),
                          Stacked({"layer.{i}.feed_forward_in", "layer.{i}.feed_forward_gate"},
                                  "encoder.layer.{i}.mlp.up_gate_proj"),
                          {{"layer.{i}.output", "encoder.layer.{i}.attention.o_proj"},
                           {"layer.{i}.attention_norm", "encoder.layer.{i}.attn_ln"},
                           {"layer.{i}.feed_forward_out", "encoder.layer.{i}.mlp.down_proj"},
                           {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.mlp_ln"},
                           {"pooling.dense", "pooler.dense"}},
                          ClassifierNames("pooler.dense", "/classifier")}),
  };
}

// As its authors publish it, before the library had it.
Family PublishedGte() {
  Family family = Gte();
  family.model_types = {"new"};
  family.architectures = {"New"};
  family.rotary_theta = 10000;
  return family;
}

Family NeoBert() {
  return {
      .name = "neobert",
      .model_types = {"neobert"},
      .architectures = {"NeoBERT"},
      .prefixes = {"model."},
      .parts = {"encoder.", "transformer_encoder.", "layer_norm."},
      .keys = {.norm_epsilon = {"norm_eps"}, .positions = {}},
      .fixed_keys = {{"rms_norm", true}, {"rope", true}, {"ngpt", false}},
      .harmless_keys = Words("base_scale classifier_init_range decoder_init_range dim_head "
                             "embedding_init_range flash_attention kwargs"),
      .has_every_bias = false,
      .norm_epsilon = 1e-6f,
      .feed_forward_kinds = {{"SwiGLU", {Activation::kSilu, true}},
                             {"swiglu", {Activation::kSilu, true}}},
      .feed_forward_is_two_thirds = true,
      .norm_placement = NormPlacement::kPre,
      .norm_kind = NormKind::kRms,
      .has_embedding_norm = false,
      .relative_positions = {.kind = RelativePositions::kRotary,
                             .rotary = {.pairs = RotaryPairs::kInterleaved}},
      .rotary_theta = 10000,
      .names = JoinNames({StackedInputs("transformer_encoder.{i}.qkv", RowUnit::kHead),
                          Stacked({"layer.{i}.feed_forward_gate", "layer.{i}.feed_forward_in"},
                                  "transformer_encoder.{i}.ffn.w12"),
                          {{"embeddings.word", "encoder.weight"},
                           {"layer.{i}.output", "transformer_encoder.{i}.wo"},
                           {"layer.{i}.attention_norm", "transformer_encoder.{i}.attention_norm"},
                           {"layer.{i}.feed_forward_out", "transformer_encoder.{i}.ffn.w3"},
                           {"layer.{i}.feed_forward_norm", "transformer_encoder.{i}.ffn_norm"},
                           {"exit_norm", "layer_norm"}},
                          ClassifierNames("/dense", "/classifier")}),
      .token_head_names = {},
  };
}

// Its configs have BERT's model_type; only the architecture identifies it.
Family JinaBert() {
  return {
      .name = "jina_bert",
      .model_types = {},
      .architectures = {"JinaBert"},
      .prefixes = {"bert."},
      .parts = {"embeddings.", "encoder."},
      .pooler = "pooler.",
      .keys = {.activation = {"feed_forward_type"},
               .positions = {},
               .token_types = {"type_vocab_size"}},
      .harmless_keys = {"emb_pooler", "hidden_act", "max_position_embeddings"},
      .position_embedding_types = {"alibi"},
      .has_every_bias = false,
      .feed_forward_kinds = {{"geglu", {Activation::kGelu, true}},
                             {"reglu", {Activation::kRelu, true}}},
      .relative_positions = {.kind = RelativePositions::kAlibi},
      .names = JoinNames(
          {BertNames(),
           {{"layer.{i}.feed_forward_gate", "encoder.layer.{i}.mlp.gated_layers", {0, 2}},
            {"layer.{i}.feed_forward_in", "encoder.layer.{i}.mlp.gated_layers", {1, 2}},
            {"layer.{i}.feed_forward_out", "encoder.layer.{i}.mlp.wo"},
            {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.mlp.layernorm"},
            // The rest is only in the models for code.
            {"layer.{i}.query_norm", "encoder.layer.{i}.attention.self.layer_norm_q"},
            {"layer.{i}.key_norm", "encoder.layer.{i}.attention.self.layer_norm_k"},
            {"layer.{i}.second_attention_norm", "encoder.layer.{i}.layer_norm_1"},
            {"layer.{i}.feed_forward_in", "encoder.layer.{i}.mlp.up_gated_layer", {0, 2}},
            {"layer.{i}.feed_forward_gate", "encoder.layer.{i}.mlp.up_gated_layer", {1, 2}},
            {"layer.{i}.feed_forward_out", "encoder.layer.{i}.mlp.down_layer"},
            {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.layer_norm_2"}}}),
  };
}

// The names of the library, and those that the authors publish. There every weight of a linear
// layer and every table is the "original" of a parametrization; see task_adapters.h.
NamePatterns JinaV3Names() {
  const std::string original = ".parametrizations.weight.original";
  NamePatterns names = JoinNames(
      {LayerNames("layers.{i}.",
                  {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                   "post_attention_layernorm", "mlp.fc1", "mlp.fc2", "post_mlp_layernorm"}),
       BertEmbeddingNames(), ClassifierNames("/classifier.dense", "/classifier.out_proj")});
  NamePatterns published = JinaRobertaNames();
  published.push_back({"pooling.dense", "pooler.dense"});
  for (const NamePattern& part : published) {
    names.push_back(part);
    if (absl::EndsWith(part.canonical, "norm")) continue;
    names.push_back({part.canonical + ".weight", part.in_file + original, part.rows});
  }
  names.push_back({"embeddings.word", "embeddings.word_embeddings" + original});
  names.push_back({"embeddings.token_type", "embeddings.token_type_embeddings" + original});
  return names;
}

Family JinaV3() {
  return {
      .name = "jina_embeddings_v3",
      .model_types = {"jina_embeddings_v3"},
      .architectures = {"JinaEmbeddingsV3"},
      .prefixes = {"roberta."},
      .parts = {"embeddings.", "emb_ln.", "encoder.", "layers."},
      .pooler = "pooler.",
      .keys = {.positions = {},
               .token_types = {"type_vocab_size"},
               .rotary_theta = {"rotary_emb_base", "rope_theta"}},
      .fixed_keys = {{"partial_rotary_factor", 1}, {"use_reg_tokens", false}},
      .harmless_keys = Words("emb_pooler load_trained_adapters lora_adaptations lora_alpha "
                             "lora_dropout_p lora_main_params_trainable lora_prompts lora_rank "
                             "max_position_embeddings task_instructions truncate_dim "
                             "use_flash_attn"),
      .own_transformer = "custom_st.Transformer",
      .norm_epsilon = 1e-5f,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 20000,
      .scales_rotary = true,
      .names = JinaV3Names(),
  };
}

// As its authors publish it, with the model_type of XLM-RoBERTa.
Family PublishedJinaV3() {
  Family family = JinaV3();
  family.model_types = {"xlm-roberta"};
  family.architectures = {};
  family.position_embedding_types = {"rotary"};
  return family;
}

}  // namespace

std::vector<Family> LongTextFamilies() {
  return {ModernBert(), NomicBert(), Gte(),    PublishedGte(),
          NeoBert(),    JinaBert(),  JinaV3(), PublishedJinaV3()};
}

}  // namespace attendant
