// Families whose layers take rows of image patches or audio frames. The convolutions that make
// these rows of pixels and samples are outside the server.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

NamePatterns VitNames() {
  return JoinNames(
      {LayerNames("encoder.layer.{i}.",
                  {"attention.attention.query", "attention.attention.key",
                   "attention.attention.value", "attention.output.dense", "layernorm_before",
                   "intermediate.dense", "output.dense", "layernorm_after"}),
       {{"front.class", "embeddings.cls_token"},
        {"front.distillation", "embeddings.distillation_token"},
        {"front.positions", "embeddings.position_embeddings"},
        {"exit_norm", "layernorm"},
        {"pooling.dense", "pooler.dense"},
        {"classifier.dense", "/classifier"}}});
}

NamePatterns Dinov2Names() {
  return JoinNames({VitNames(),
                    {{"front.registers", "embeddings.register_tokens"},
                     {"layer.{i}.attention_norm", "encoder.layer.{i}.norm1"},
                     {"layer.{i}.attention_scale", "encoder.layer.{i}.layer_scale1.lambda1"},
                     {"layer.{i}.feed_forward_gate", "encoder.layer.{i}.mlp.weights_in", {0, 2}},
                     {"layer.{i}.feed_forward_in", "encoder.layer.{i}.mlp.fc1"},
                     {"layer.{i}.feed_forward_in", "encoder.layer.{i}.mlp.weights_in", {1, 2}},
                     {"layer.{i}.feed_forward_out", "encoder.layer.{i}.mlp.fc2"},
                     {"layer.{i}.feed_forward_out", "encoder.layer.{i}.mlp.weights_out"},
                     {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.norm2"},
                     {"layer.{i}.feed_forward_scale", "encoder.layer.{i}.layer_scale2.lambda1"}}});
}

Family Vit() {
  return {
      .name = "vit",
      .model_types = {"vit", "deit"},
      .architectures = {"ViT", "DeiT"},
      .prefixes = {"vit.", "deit."},
      .parts = {"encoder.", "layernorm."},
      .others = {"embeddings."},
      .pooler = "pooler.",
      .keys = {.vocabulary = {},
               .positions = {},
               .pooler_activation = {"pooler_act"},
               .pooler_width = {"pooler_output_size"}},
      .harmless_keys = Words("encoder_stride image_size num_channels patch_size qkv_bias"),
      .has_every_bias = false,
      .norm_placement = NormPlacement::kPre,
      .patches_are_grid = true,
      .names = VitNames(),
  };
}

Family Dinov2() {
  return {
      .name = "dinov2",
      .model_types = {"dinov2", "dinov2_with_registers"},
      .architectures = {"Dinov2", "Dinov2WithRegisters"},
      .prefixes = {"dinov2.", "dinov2_with_registers."},
      .parts = {"encoder.", "layernorm."},
      .others = {"embeddings."},
      .classifier_modes = {PoolingMode::kFirstToken, PoolingMode::kFeatureMean},
      .keys = {.feed_forward_width = {},
               .feed_forward_ratio = {"mlp_ratio"},
               .swiglu = {"use_swiglu_ffn"},
               .vocabulary = {},
               .positions = {}},
      .harmless_keys = Words("apply_layernorm drop_path_rate image_size layerscale_value "
                             "num_channels num_register_tokens out_features out_indices "
                             "patch_size qkv_bias reshape_hidden_states stage_names "
                             "use_mask_token"),
      .has_every_bias = false,
      .norm_epsilon = 1e-6f,
      .norm_placement = NormPlacement::kPre,
      .has_branch_scale = true,
      .patches_are_grid = true,
      .names = Dinov2Names(),
  };
}

Family Whisper() {
  return {
      .name = "whisper",
      .model_types = {"whisper"},
      .architectures = {"Whisper"},
      .prefixes = {"model."},
      .parts = {"encoder."},
      .others = {"encoder.conv1.", "encoder.conv2.", "decoder."},
      .classifier_modes = {PoolingMode::kMean},
      .classifier_activation = Activation::kIdentity,
      .keys = {.hidden_size = {"d_model", "hidden_size"},
               .heads = {"encoder_attention_heads", "num_attention_heads"},
               .layers = {"encoder_layers", "num_hidden_layers"},
               .feed_forward_width = {"encoder_ffn_dim"},
               .activation = {"activation_function"},
               .norm_epsilon = {},
               .vocabulary = {},
               .positions = {}},
      .harmless_keys = Words("activation_dropout apply_spec_augment classifier_proj_size "
                             "decoder_attention_heads decoder_ffn_dim decoder_layerdrop "
                             "decoder_layers encoder_layerdrop forced_decoder_ids init_std "
                             "mask_feature_length mask_feature_min_masks mask_feature_prob "
                             "mask_time_length mask_time_min_masks mask_time_prob "
                             "max_source_positions max_target_positions median_filter_width "
                             "num_mel_bins scale_embedding use_weighted_layer_sum vocab_size"),
      .has_every_bias = false,  // keys have no bias
      .norm_epsilon = 1e-5f,
      .norm_placement = NormPlacement::kPre,
      .names = JoinNames({{{"front.positions", "encoder.embed_positions.weight"}},
                          BartLayerNames(),
                          ClassifierNames("/projector", "/classifier")}),
  };
}

Family Wav2Vec2() {
  return {
      .name = "wav2vec2",
      .model_types = {"wav2vec2", "hubert"},
      .architectures = {"Wav2Vec2", "Hubert"},
      .prefixes = {"wav2vec2.", "hubert."},
      .parts = {"encoder."},
      .others = {"feature_extractor.", "feature_projection.", "encoder.pos_conv_embed.",
                 "masked_spec_embed", "adapter."},
      .classifier_modes = {PoolingMode::kMean},
      .classifier_activation = Activation::kIdentity,
      .keys = {.norm_first = {"do_stable_layer_norm"}, .vocabulary = {}, .positions = {}},
      .fixed_keys = {{"add_adapter", false}, {"adapter_attn_dim", nullptr}},
      .harmless_keys = Words("activation_dropout adapter_kernel_size adapter_stride "
                             "apply_spec_augment classifier_proj_size codevector_dim "
                             "contrastive_logits_temperature conv_bias conv_dim conv_kernel "
                             "conv_pos_batch_norm conv_stride ctc_loss_reduction "
                             "ctc_zero_infinity diversity_loss_weight do_normalize "
                             "feat_extract_activation feat_extract_dropout feat_extract_norm "
                             "feat_proj_dropout feat_proj_layer_norm feat_quantizer_dropout "
                             "final_dropout freeze_feat_extract_train hidden_dropout layerdrop "
                             "mask_channel_length mask_channel_min_space mask_channel_other "
                             "mask_channel_prob mask_channel_selection mask_feature_length "
                             "mask_feature_min_masks mask_feature_prob mask_time_length "
                             "mask_time_min_masks mask_time_min_space mask_time_other "
                             "mask_time_prob mask_time_selection no_mask_channel_overlap "
                             "no_mask_time_overlap num_adapter_layers num_codevector_groups "
                             "num_codevectors_per_group num_conv_pos_embedding_groups "
                             "num_conv_pos_embeddings num_feat_extract_layers num_negatives "
                             "output_hidden_size proj_codevector_dim tdnn_dilation tdnn_dim "
                             "tdnn_kernel use_weighted_layer_sum vocab_size xvector_output_dim"),
      .norm_epsilon = 1e-5f,
      .names = JoinNames(
          {LayerNames("encoder.layers.{i}.",
                      {"attention.q_proj", "attention.k_proj", "attention.v_proj",
                       "attention.out_proj", "layer_norm", "feed_forward.intermediate_dense",
                       "feed_forward.output_dense", "final_layer_norm"}),
           {{"exit_norm", "encoder.layer_norm"},    // if norms come first
            {"front.norm", "encoder.layer_norm"}},  // if norms come last
           ClassifierNames("/projector", "/classifier")}),
  };
}

}  // namespace

std::vector<Family> SignalFamilies() { return {Vit(), Dinov2(), Whisper(), Wav2Vec2()}; }

}  // namespace attendant
