// Families that read text.

#include <utility>

#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

constexpr char kDense[] = "/classifier.dense", kOutput[] = "/classifier.out_proj";  // RoBERTa's

Family Bert() {
  return {
      .name = "bert",
      .model_types = {"bert"},
      .architectures = {"Bert"},
      .prefixes = {"bert."},
      .parts = {"embeddings.", "encoder."},
      .pooler = "pooler.",
      .keys = {.token_types = {"type_vocab_size"}},
      .names = JoinNames({BertNames(), ClassifierNames("pooler.dense", "/classifier")}),
      .vocabulary_head_names = BertVocabularyHeadNames(),
  };
}

Family Roberta() {
  Family family = Like(Bert(), "roberta", "Roberta");
  family.model_types = {"roberta", "xlm-roberta", "camembert"};
  family.architectures = {"Roberta", "XLMRoberta", "Camembert"};
  family.prefixes = {"roberta.", "xlm-roberta.", "camembert."};
  family.parts = {"embeddings.", "emb_ln.", "encoder."};
  family.keys.padding_id = {"pad_token_id"};
  family.harmless_keys = {"emb_pooler", "use_flash_attn"};  // of Jina's code
  family.position_rule = PositionRule::kCountNotPadding;
  family.padding_id = 1;
  family.names = JoinNames({BertNames(), ClassifierNames(kDense, kOutput)});
  for (NamePattern& pattern : JinaRobertaNames()) family.names.push_back(std::move(pattern));
  family.vocabulary_head_names = RobertaVocabularyHeadNames();
  family.vocabulary_head_activation = Activation::kGelu;
  return family;
}

// Both heads that the library has for version 2: the old one, and the one for "legacy": false.
NamePatterns DebertaVocabularyHeadNames() {
  NamePatterns names = BertVocabularyHeadNames();
  names.push_back({"vocabulary_head.dense", "/lm_predictions.lm_head.dense"});
  names.push_back({"vocabulary_head.dense_norm", "/lm_predictions.lm_head.LayerNorm"});
  names.push_back({"vocabulary_head.output.bias", "/lm_predictions.lm_head.bias"});
  return names;
}

NamePatterns T5Names() {
  const std::string layer = "encoder.block.{i}.layer.";
  return JoinNames(
      {LayerNames(layer, {"0.SelfAttention.q", "0.SelfAttention.k", "0.SelfAttention.v",
                          "0.SelfAttention.o", "0.layer_norm", "1.DenseReluDense.wi",
                          "1.DenseReluDense.wo", "1.layer_norm"}),
       {{"embeddings.word", "encoder.embed_tokens.weight"},
        {"embeddings.word", "shared.weight"},
        {"relative_positions",
         "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
        {"layer.{i}.feed_forward_gate", layer + "1.DenseReluDense.wi_0"},
        {"layer.{i}.feed_forward_in", layer + "1.DenseReluDense.wi"},
        {"layer.{i}.feed_forward_in", layer + "1.DenseReluDense.wi_1"},
        {"exit_norm", "encoder.final_layer_norm"}}});
}

Family Electra() {
  Family family = Like(Bert(), "electra", "Electra");
  family.prefixes = {"electra."};
  family.parts = {"embeddings.", "embeddings_project.", "encoder."};
  family.pooler = "";
  family.keys.embedding_width = {"embedding_size"};
  family.classifier_activation = Activation::kGelu;
  family.names = JoinNames({BertNames(), ClassifierNames(kDense, kOutput)});
  family.harmless_keys = Words(
      "summary_activation summary_first_dropout summary_last_dropout summary_type "
      "summary_use_proj");
  family.vocabulary_head_names = VocabularyHeadNames(
      "/generator_predictions.dense", "/generator_predictions.LayerNorm", "/generator_lm_head");
  family.vocabulary_head_activation = Activation::kGelu;
  return family;
}

Family DistilBert() {
  return {
      .name = "distilbert",
      .model_types = {"distilbert"},
      .architectures = {"DistilBert"},
      .prefixes = {"distilbert."},
      .parts = {"embeddings.", "transformer."},
      .classifier_activation = Activation::kRelu,
      .keys = {.hidden_size = {"dim", "hidden_size"},
               .heads = {"n_heads", "num_attention_heads"},
               .layers = {"n_layers", "num_hidden_layers"},
               .feed_forward_width = {"hidden_dim"},
               .activation = {"activation"},
               .norm_epsilon = {}},
      .harmless_keys = Words("qa_dropout seq_classif_dropout sinusoidal_pos_embds tie_weights_"),
      .names = JoinNames(
          {BertEmbeddingNames(),
           LayerNames("transformer.layer.{i}.",
                      {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
                       "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"}),
           ClassifierNames("/pre_classifier", "/classifier")}),
      .vocabulary_head_names =
          VocabularyHeadNames("/vocab_transform", "/vocab_layer_norm", "/vocab_projector"),
  };
}

Family Albert() {
  Family family = Like(Bert(), "albert", "Albert");
  family.prefixes = {"albert."};
  family.keys.layer_groups = {"num_hidden_groups"};
  family.keys.embedding_width = {"embedding_size"};
  family.fixed_keys = {{"inner_group_num", 1}};
  family.harmless_keys = Words("down_scale_factor gap_size net_structure_type num_memory_blocks");
  family.activation = Activation::kGeluTanh;
  family.always_projects_embeddings = true;
  family.names = JoinNames(
      {BertEmbeddingNames(),
       LayerNames("encoder.albert_layer_groups.{i}.albert_layers.0.",
                  {"attention.query", "attention.key", "attention.value", "attention.dense",
                   "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"}),
       {{"embeddings.projection", "encoder.embedding_hidden_mapping_in"},
        {"pooling.dense", "pooler"}},
       ClassifierNames("pooler", "/classifier")});
  family.vocabulary_head_names = VocabularyHeadNames("/predictions.dense", "/predictions.LayerNorm",
                                                     "/predictions.decoder", "/predictions.bias");
  return family;
}

// BigBird reads long text with block-sparse attention. Its tensors are BERT's, except the pooler.
Family BigBird() {
  Family family = Like(Bert(), "big_bird", "BigBird");
  family.keys.attention_type = {"attention_type"};
  family.keys.scales_words = {"rescale_embeddings"};
  family.harmless_keys = {"padding", "use_bias"};
  family.has_every_bias = false;
  family.activation = Activation::kGeluTanh;
  family.classifier_activation = {};
  family.names =
      JoinNames({BertNames(), {{"pooling.dense", "pooler"}}, ClassifierNames(kDense, kOutput)});
  return family;
}

// Two of the norms have torch's default epsilon in the library, whatever the config says.
Family MobileBert() {
  Family family = Like(Bert(), "mobilebert", "MobileBert");
  family.prefixes = {"mobilebert."};
  family.others = {"embeddings.embedding_transformation."};  // if the words are not projected
  family.keys.embedding_width = {"embedding_size"};
  family.keys.bottleneck = {"intra_bottleneck_size"};
  family.fixed_keys = {{"classifier_activation", true}};
  family.harmless_keys = {"true_hidden_size"};  // follows from the other sizes
  family.keys.norm_kind = {"normalization_type"};
  family.activation = Activation::kRelu;
  family.norm_kind = NormKind::kAffine;
  family.own_norm_epsilon = 1e-5f;
  family.embedding_norm_is_last = true;
  family.projects_words = true;
  family.names = JoinNames(
      {BertNames(),
       {{"embeddings.projection", "embeddings.embedding_transformation"},
        {"layer.{i}.bottleneck_in", "encoder.layer.{i}.bottleneck.input.dense"},
        {"layer.{i}.bottleneck_in_norm", "encoder.layer.{i}.bottleneck.input.LayerNorm"},
        {"layer.{i}.bottleneck_attention", "encoder.layer.{i}.bottleneck.attention.dense"},
        {"layer.{i}.bottleneck_attention_norm", "encoder.layer.{i}.bottleneck.attention.LayerNorm"},
        {"layer.{i}.before.{j}.feed_forward_in", "encoder.layer.{i}.ffn.{j}.intermediate.dense"},
        {"layer.{i}.before.{j}.feed_forward_out", "encoder.layer.{i}.ffn.{j}.output.dense"},
        {"layer.{i}.before.{j}.feed_forward_norm", "encoder.layer.{i}.ffn.{j}.output.LayerNorm"},
        {"layer.{i}.bottleneck_out", "encoder.layer.{i}.output.bottleneck.dense"},
        {"layer.{i}.bottleneck_out_norm", "encoder.layer.{i}.output.bottleneck.LayerNorm"}},
       ClassifierNames("pooler.dense", "/classifier")});
  family.vocabulary_head_names = {};  // its decoder has two parts
  return family;
}

// The library's code has a table of 32 buckets for distances of up to 128, whatever the config
// says.
Family MpNet() {
  Family family = Like(Bert(), "mpnet", "MPNet");
  family.prefixes = {"mpnet."};
  family.keys.token_types = {};
  family.fixed_keys = {{"relative_attention_num_buckets", 32}};
  family.position_rule = PositionRule::kCountNotPadding;
  family.padding_id = 1;
  family.relative_positions = {RelativePositions::kBuckets, 32, 128};
  family.names = JoinNames({BertNames(),
                            {{"relative_positions", "encoder.relative_attention_bias.weight"},
                             {"layer.{i}.query", "encoder.layer.{i}.attention.attn.q"},
                             {"layer.{i}.key", "encoder.layer.{i}.attention.attn.k"},
                             {"layer.{i}.value", "encoder.layer.{i}.attention.attn.v"},
                             {"layer.{i}.output", "encoder.layer.{i}.attention.attn.o"},
                             {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.LayerNorm"}},
                            ClassifierNames(kDense, kOutput)});
  family.vocabulary_head_names = RobertaVocabularyHeadNames();
  family.vocabulary_head_activation = Activation::kGelu;
  return family;
}

// Version 3 has the code of version 2. Some files contain a table of positions that the model does
// not use.
Family DebertaV2() {
  return {
      .name = "deberta-v2",
      .model_types = {"deberta-v2"},
      .architectures = {"DebertaV2"},
      .prefixes = {"deberta."},
      .parts = {"embeddings.", "encoder."},
      .others = {"embeddings.position_embeddings."},
      .classifier_activation = Activation::kGelu,
      .keys = {.has_positions = {"position_biased_input"},
               .token_types = {"type_vocab_size"},
               .embedding_width = {"embedding_size"},
               .convolution = {"conv_kernel_size"}},
      .fixed_keys = {{"pooler_hidden_act", "gelu"}},
      .harmless_keys = {"legacy", "pooler_dropout", "pooler_hidden_size"},
      .has_every_bias = false,
      .norm_epsilon = 1e-7f,
      .embedding_norm_is_last = true,
      .fewest_token_types = 0,
      .relative_positions = {.kind = RelativePositions::kDisentangled},
      .names = JoinNames(
          {BertNames(),
           {{"embeddings.projection", "embeddings.embed_proj"},
            {"relative_positions", "encoder.rel_embeddings.weight"},
            {"relative_positions_norm", "encoder.LayerNorm"},
            {"layer.{i}.query", "encoder.layer.{i}.attention.self.query_proj"},
            {"layer.{i}.key", "encoder.layer.{i}.attention.self.key_proj"},
            {"layer.{i}.value", "encoder.layer.{i}.attention.self.value_proj"},
            {"layer.{i}.position_key", "encoder.layer.{i}.attention.self.pos_key_proj"},
            {"layer.{i}.position_query", "encoder.layer.{i}.attention.self.pos_query_proj"},
            {"layer.{i}.convolution", "encoder.conv.conv"},
            {"layer.{i}.convolution_norm", "encoder.conv.LayerNorm"}},
           ClassifierNames("/pooler.dense", "/classifier")}),
      .vocabulary_head_names = DebertaVocabularyHeadNames(),
  };
}

Family T5() {
  return {
      .name = "t5",
      .model_types = {"t5", "mt5"},
      .architectures = {"T5", "MT5"},
      .prefixes = {"transformer."},
      .parts = {"encoder."},
      .others = {"shared.", "decoder.", "lm_head."},
      .keys = {.hidden_size = {"d_model", "hidden_size"},
               .heads = {"num_heads", "num_attention_heads"},
               .head_width = {"d_kv", "head_dim"},
               .layers = {"num_layers", "num_hidden_layers"},
               .feed_forward_width = {"d_ff"},
               .activation = {"feed_forward_proj"},
               .same_activation = {"dense_act_fn"},
               .same_gate = {"is_gated_act"},
               .norm_epsilon = {"layer_norm_epsilon"},
               .positions = {},
               .position_buckets = {"relative_attention_num_buckets"},
               .position_max_distance = {"relative_attention_max_distance"}},
      .harmless_keys = Words("n_positions num_decoder_layers output_past scale_decoder_outputs"),
      .has_every_bias = false,
      .norm_epsilon = 1e-6f,
      .feed_forward_kinds = {{"relu", {Activation::kRelu, false}},
                             {"gelu", {Activation::kGelu, false}},
                             {"gated-relu", {Activation::kRelu, true}},
                             {"gated-gelu", {Activation::kGeluTanh, true}},
                             {"gated-silu", {Activation::kSilu, true}}},
      .norm_placement = NormPlacement::kPre,
      .norm_kind = NormKind::kRms,
      .scales_scores = false,
      .has_embedding_norm = false,
      .relative_positions = {RelativePositions::kBuckets, 32, 128},
      .names = T5Names(),
      .token_head_names = {{"token_head.dense", "/classifier"}},  // qa_outputs needs the decoder
  };
}

NamePatterns WithRobertaHead(const NamePatterns& names) {
  return JoinNames(
      {BertNames(), names, ClassifierNames("/classifier.dense", "/classifier.out_proj")});
}

// Files may have the sines and cosines of the rotation, which are computed here.
Family RoFormer() {
  Family family = Like(Bert(), "roformer", "RoFormer");
  family.prefixes = {"roformer."};
  family.parts = {"embeddings.", "embeddings_project.", "encoder."};
  family.others = {"encoder.embed_positions."};
  family.pooler = "";
  family.keys.positions = {};
  family.keys.embedding_width = {"embedding_size"};
  family.fixed_keys = {{"rotary_value", false, "values are not rotated"}};
  family.harmless_keys = {"max_position_embeddings"};
  family.classifier_activation = {};
  family.relative_positions = {.kind = RelativePositions::kRotary,
                               .rotary = {.pairs = RotaryPairs::kInterleaved}};
  family.rotary_theta = 10000;
  family.names = WithRobertaHead({});
  return family;
}

Family Data2VecText() {
  Family family = Like(Roberta(), "data2vec-text", "Data2VecText");
  family.prefixes = {"data2vec_text."};
  return family;
}

// Tokens are of task type 0, as in the library without task_type_ids.
Family Ernie() {
  Family family = Like(Bert(), "ernie", "Ernie");
  family.prefixes = {"ernie."};
  family.others = {"embeddings.task_type_embeddings."};  // unused without use_task_id
  family.keys.has_task_types = {"use_task_id"};
  family.keys.task_types = {"task_type_vocab_size"};
  family.names.push_back({"embeddings.task_type", "embeddings.task_type_embeddings.weight"});
  return family;
}

Family RemBert() {
  Family family = Like(Bert(), "rembert", "RemBert");
  family.prefixes = {"rembert."};
  family.keys.embedding_width = {"input_embedding_size"};
  family.harmless_keys = {"output_embedding_size"};  // follows from the head's weights
  family.always_projects_embeddings = true;
  family.names =
      JoinNames({family.names, {{"embeddings.projection", "encoder.embedding_hidden_mapping_in"}}});
  family.vocabulary_head_names = {{"vocabulary_head.dense", "/cls.predictions.dense"},
                                  {"vocabulary_head.dense_norm", "/cls.predictions.LayerNorm"},
                                  {"vocabulary_head.output", "/cls.predictions.decoder"}};
  return family;
}

NamePatterns EsmNames() {
  return {{"embeddings.norm", "embeddings.layer_norm"},
          {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.LayerNorm"},
          {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.LayerNorm"},
          {"exit_norm", "encoder.emb_layer_norm_after"},
          {"rotary_frequencies", "rotary_embeddings.inv_freq"},
          {"rotary_frequencies", "encoder.layer.*.attention.self.rotary_embeddings.inv_freq"},
          {"rotary_frequencies", "encoder.layer.0.attention.self.rotary_embeddings.inv_freq"}};
}

// ESM-2, which reads proteins. Published files have the rotary frequencies as they were in the
// training, in half precision; the library uses the first layer's for all layers. Some files have a
// table of positions that the model does not use. The library's code has exact GELU, whatever the
// config says.
Family Esm() {
  Family family = Like(Bert(), "esm", "Esm");
  family.prefixes = {"esm."};
  family.others = {"contact_head.", "embeddings.position_embeddings."};
  family.keys.activation = {};
  family.keys.positions = {};
  family.keys.token_types = {};
  family.keys.leaves_out_masks = {"token_dropout"};
  family.keys.has_embedding_norm = {"emb_layer_norm_before"};
  family.keys.rotary_theta = {"rope_theta"};
  family.fixed_keys = {{"is_folding_model", false}, {"esmfold_config", nullptr}};
  family.harmless_keys = {"hidden_act", "max_position_embeddings", "vocab_list"};
  family.position_embedding_types = {"rotary"};
  family.position_embedding_type = "absolute";
  family.norm_placement = NormPlacement::kPre;
  family.has_embedding_norm = false;
  family.relative_positions = {.kind = RelativePositions::kRotary};
  family.rotary_theta = 10000;
  family.names = WithRobertaHead(EsmNames());
  family.vocabulary_head_names = RobertaVocabularyHeadNames();
  family.vocabulary_head_activation = Activation::kGelu;
  return family;
}

}  // namespace

std::vector<Family> TextFamilies() {
  return {Bert(),     Roberta(),      Electra(), DistilBert(), Albert(),
          BigBird(),  MobileBert(),   MpNet(),   DebertaV2(),  T5(),
          RoFormer(), Data2VecText(), Ernie(),   RemBert(),    Esm()};
}

}  // namespace attendant
