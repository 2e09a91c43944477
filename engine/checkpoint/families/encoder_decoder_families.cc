// The encoders of encoder-decoder models that read text, in the format of BART.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

// Config keys that every model of the family must set the same way: norms before the branches and
// after the last layer, an embedding norm, and sinusoidal positions.
std::vector<FixedKey> FixedFlags(bool norms_first, bool norms_embeddings, bool has_sinusoids) {
  return {{"normalize_before", norms_first},
          {"add_final_layer_norm", norms_first},
          {"normalize_embedding", norms_embeddings},
          {"static_position_embeddings", has_sinusoids}};
}

// Positions begin at row 2 of their table.
Family Bart() {
  return {
      .name = "bart",
      .model_types = {"bart"},
      .architectures = {"Bart"},
      .prefixes = {"model."},
      .parts = {"encoder."},
      .others = {"shared.", "decoder.", "encoder.version"},
      .keys = {.hidden_size = {"d_model", "hidden_size"},
               .heads = {"encoder_attention_heads", "num_attention_heads"},
               .layers = {"encoder_layers", "num_hidden_layers"},
               .feed_forward_width = {"encoder_ffn_dim"},
               .activation = {"activation_function"},
               .norm_epsilon = {},
               .scales_words = {"scale_embedding"}},
      .fixed_keys = FixedFlags(false, true, false),
      .harmless_keys = Words("activation_dropout add_bias_logits classif_dropout "
                             "decoder_attention_heads decoder_ffn_dim decoder_layerdrop "
                             "decoder_layers decoder_vocab_size encoder_layerdrop "
                             "extra_pos_embeddings force_bos_token_to_be_generated init_std "
                             "share_encoder_decoder_embeddings"),
      .norm_epsilon = 1e-5f,
      .first_position = 2,
      .counts_from_first_position = true,
      .names = JoinNames({{{"embeddings.word", "encoder.embed_tokens.weight"},
                           {"embeddings.word", "shared.weight"},
                           {"embeddings.position", "encoder.embed_positions.weight"},
                           {"embeddings.norm", "encoder.layernorm_embedding"}},
                          BartLayerNames()}),
      .token_head_names = {},
  };
}

Family MBart() {
  Family family = Like(Bart(), "mbart", "MBart");
  family.fixed_keys = FixedFlags(true, true, false);
  family.norm_placement = NormPlacement::kPre;
  return family;
}

// Files written by older versions of the library contain the sinusoids.
Family Marian() {
  Family family = Like(Bart(), "marian", "Marian");
  family.architectures.push_back("MarianMT");
  family.fixed_keys = FixedFlags(false, false, true);
  family.has_embedding_norm = false;
  family.first_position = 0;
  family.counts_from_first_position = false;
  family.sinusoids = Sinusoids::kHalvesOfAll;
  return family;
}

Family Pegasus() {
  Family family = Like(Marian(), "pegasus", "Pegasus");
  family.fixed_keys = FixedFlags(true, false, true);
  family.norm_placement = NormPlacement::kPre;
  return family;
}

// M2M100 and NLLB. The row of padding in the table of sinusoids is zeros.
Family M2M100() {
  Family family = Like(Bart(), "m2m_100", "M2M100");
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
