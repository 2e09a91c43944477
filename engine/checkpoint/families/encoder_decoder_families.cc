// The encoders of encoder-decoder models that read text, in the format of BART.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

std::vector<NamePattern> BartNames() {
  return {
      {"embeddings.word", "shared.weight"},
      {"embeddings.word", "encoder.embed_tokens.weight"},
      {"embeddings.position", "encoder.embed_positions.weight"},
      {"embeddings.norm", "encoder.layernorm_embedding"},
      {"layer.{i}.query", "encoder.layers.{i}.self_attn.q_proj"},
      {"layer.{i}.key", "encoder.layers.{i}.self_attn.k_proj"},
      {"layer.{i}.value", "encoder.layers.{i}.self_attn.v_proj"},
      {"layer.{i}.output", "encoder.layers.{i}.self_attn.out_proj"},
      {"layer.{i}.attention_norm", "encoder.layers.{i}.self_attn_layer_norm"},
      {"layer.{i}.feed_forward_in", "encoder.layers.{i}.fc1"},
      {"layer.{i}.feed_forward_out", "encoder.layers.{i}.fc2"},
      {"layer.{i}.feed_forward_norm", "encoder.layers.{i}.final_layer_norm"},
      {"exit_norm", "encoder.layer_norm"},  // if norms come first
  };
}

Keys BartHarmlessKeys() {
  return {"activation_dropout",
          "add_bias_logits",
          "classif_dropout",
          "decoder_attention_heads",
          "decoder_ffn_dim",
          "decoder_layerdrop",
          "decoder_layers",
          "decoder_vocab_size",
          "encoder_layerdrop",
          "extra_pos_embeddings",
          "force_bos_token_to_be_generated",
          "init_std",
          "share_encoder_decoder_embeddings"};
}

// Positions begin at row 2 of their table.
Family Bart() {
  return {
      .name = "bart",
      .model_types = {"bart"},
      .architectures = {"Bart"},
      .prefixes = {"model."},
      .parts = {"shared.", "encoder."},
      .others = {"decoder.", "encoder.embed_tokens.", "encoder.version"},
      .keys = {.hidden_size = {"d_model", "hidden_size"},
               .heads = {"encoder_attention_heads", "num_attention_heads"},
               .layers = {"encoder_layers", "num_hidden_layers"},
               .feed_forward_width = {"encoder_ffn_dim"},
               .activation = {"activation_function"},
               .norm_epsilon = {},
               .scales_words = {"scale_embedding"}},
      .fixed_keys = {{"normalize_before", false},
                     {"add_final_layer_norm", false},
                     {"normalize_embedding", true},
                     {"static_position_embeddings", false}},
      .harmless_keys = BartHarmlessKeys(),
      .norm_epsilon = 1e-5f,
      .first_position = 2,
      .counts_from_first_position = true,
      .names = BartNames(),
      .token_head_names = {},
  };
}

Family MBart() {
  Family family = Bart();
  family.name = "mbart";
  family.model_types = {"mbart"};
  family.architectures = {"MBart"};
  family.fixed_keys = {{"normalize_before", true},
                       {"add_final_layer_norm", true},
                       {"normalize_embedding", true},
                       {"static_position_embeddings", false}};
  family.norm_placement = NormPlacement::kPre;
  return family;
}

// Its files have the sinusoids, at least those of older versions of the library.
Family Marian() {
  Family family = Bart();
  family.name = "marian";
  family.model_types = {"marian"};
  family.architectures = {"Marian", "MarianMT"};
  family.fixed_keys = {{"normalize_before", false},
                       {"add_final_layer_norm", false},
                       {"normalize_embedding", false},
                       {"static_position_embeddings", true}};
  family.has_embedding_norm = false;
  family.first_position = 0;
  family.counts_from_first_position = false;
  family.sinusoids = Sinusoids::kHalvesOfAll;
  return family;
}

Family Pegasus() {
  Family family = Marian();
  family.name = "pegasus";
  family.model_types = {"pegasus"};
  family.architectures = {"Pegasus"};
  family.fixed_keys = {{"normalize_before", true},
                       {"add_final_layer_norm", true},
                       {"normalize_embedding", false},
                       {"static_position_embeddings", true}};
  family.norm_placement = NormPlacement::kPre;
  return family;
}

// M2M100 and NLLB. The row of padding in the table of sinusoids is zeros.
Family M2M100() {
  Family family = Bart();
  family.name = "m2m_100";
  family.model_types = {"m2m_100"};
  family.architectures = {"M2M100"};
  family.others.push_back("encoder.embed_positions.");  // of older versions of the library
  family.keys.padding_id = {"pad_token_id"};
  family.fixed_keys = {};
  family.activation = Activation::kRelu;
  family.norm_placement = NormPlacement::kPre;
  family.has_embedding_norm = false;
  family.scales_words = true;
  family.position_rule = PositionRule::kCountNotPadding;
  family.padding_id = 1;
  family.sinusoids = Sinusoids::kHalves;
  return family;
}

}  // namespace

std::vector<Family> EncoderDecoderFamilies() {
  return {Bart(), MBart(), Marian(), Pegasus(), M2M100()};
}

}  // namespace attendant
