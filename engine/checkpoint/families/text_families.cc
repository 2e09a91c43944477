// Families that read text.
#include <string_view>
#include <utility>

#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/families/vocabulary_head_names.h"

namespace attendant {

std::vector<NamePattern> BertNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"embeddings.projection", "embeddings_project"},
      {"layer.{i}.query", "encoder.layer.{i}.attention.self.query"},
      {"layer.{i}.key", "encoder.layer.{i}.attention.self.key"},
      {"layer.{i}.value", "encoder.layer.{i}.attention.self.value"},
      {"layer.{i}.output", "encoder.layer.{i}.attention.output.dense"},
      {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"},
      {"layer.{i}.feed_forward_in", "encoder.layer.{i}.intermediate.dense"},
      {"layer.{i}.feed_forward_out", "encoder.layer.{i}.output.dense"},
      {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"},
      {"pooling.dense", "pooler.dense"},
  };
}

std::vector<NamePattern> WithHead(std::vector<NamePattern> names, const char* dense,
                                  const char* output) {
  names.push_back({"classifier.dense", dense});
  names.push_back({"classifier.output", output});
  return names;
}

Family BertFamily() {
  return {
      .name = "bert",
      .model_types = {"bert"},
      .architectures = {"Bert"},
      .prefixes = {"bert."},
      .parts = {"embeddings.", "encoder."},
      .others = {},
      .pooler = "pooler.",
      .keys = {.token_types = {"type_vocab_size"}},
      .names = WithHead(BertNames(), "pooler.dense", "/classifier"),
      .vocabulary_head_names = BertVocabularyHeadNames(),
  };
}

Family RobertaFamily() {
  Family family = BertFamily();
  family.name = "roberta";
  family.model_types = {"roberta", "xlm-roberta", "camembert"};
  family.architectures = {"Roberta", "XLMRoberta", "Camembert"};
  family.prefixes = {"roberta.", "xlm-roberta.", "camembert."};
  family.keys.padding_id = {"pad_token_id"};
  family.position_rule = PositionRule::kCountNotPadding;
  family.padding_id = 1;
  family.names = WithHead(BertNames(), "/classifier.dense", "/classifier.out_proj");
  family.vocabulary_head_names = RobertaVocabularyHeadNames();
  family.vocabulary_head_activation = Activation::kGelu;
  return family;
}

namespace {

std::vector<NamePattern> DistilBertNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"layer.{i}.query", "transformer.layer.{i}.attention.q_lin"},
      {"layer.{i}.key", "transformer.layer.{i}.attention.k_lin"},
      {"layer.{i}.value", "transformer.layer.{i}.attention.v_lin"},
      {"layer.{i}.output", "transformer.layer.{i}.attention.out_lin"},
      {"layer.{i}.attention_norm", "transformer.layer.{i}.sa_layer_norm"},
      {"layer.{i}.feed_forward_in", "transformer.layer.{i}.ffn.lin1"},
      {"layer.{i}.feed_forward_out", "transformer.layer.{i}.ffn.lin2"},
      {"layer.{i}.feed_forward_norm", "transformer.layer.{i}.output_layer_norm"},
  };
}

std::vector<NamePattern> AlbertNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"embeddings.projection", "encoder.embedding_hidden_mapping_in"},
      {"layer.{i}.query", "encoder.albert_layer_groups.{i}.albert_layers.0.attention.query"},
      {"layer.{i}.key", "encoder.albert_layer_groups.{i}.albert_layers.0.attention.key"},
      {"layer.{i}.value", "encoder.albert_layer_groups.{i}.albert_layers.0.attention.value"},
      {"layer.{i}.output", "encoder.albert_layer_groups.{i}.albert_layers.0.attention.dense"},
      {"layer.{i}.attention_norm",
       "encoder.albert_layer_groups.{i}.albert_layers.0.attention.LayerNorm"},
      {"layer.{i}.feed_forward_in", "encoder.albert_layer_groups.{i}.albert_layers.0.ffn"},
      {"layer.{i}.feed_forward_out", "encoder.albert_layer_groups.{i}.albert_layers.0.ffn_output"},
      {"layer.{i}.feed_forward_norm",
       "encoder.albert_layer_groups.{i}.albert_layers.0.full_layer_layer_norm"},
      {"pooling.dense", "pooler"},
  };
}

std::vector<NamePattern> MpNetNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"relative_positions", "encoder.relative_attention_bias.weight"},
      {"layer.{i}.query", "encoder.layer.{i}.attention.attn.q"},
      {"layer.{i}.key", "encoder.layer.{i}.attention.attn.k"},
      {"layer.{i}.value", "encoder.layer.{i}.attention.attn.v"},
      {"layer.{i}.output", "encoder.layer.{i}.attention.attn.o"},
      {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.LayerNorm"},
      {"layer.{i}.feed_forward_in", "encoder.layer.{i}.intermediate.dense"},
      {"layer.{i}.feed_forward_out", "encoder.layer.{i}.output.dense"},
      {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"},
      {"pooling.dense", "pooler.dense"},
  };
}

std::vector<NamePattern> DebertaNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"embeddings.projection", "embeddings.embed_proj"},
      {"relative_positions", "encoder.rel_embeddings.weight"},
      {"relative_positions_norm", "encoder.LayerNorm"},
      {"layer.{i}.query", "encoder.layer.{i}.attention.self.query_proj"},
      {"layer.{i}.key", "encoder.layer.{i}.attention.self.key_proj"},
      {"layer.{i}.value", "encoder.layer.{i}.attention.self.value_proj"},
      {"layer.{i}.position_key", "encoder.layer.{i}.attention.self.pos_key_proj"},
      {"layer.{i}.position_query", "encoder.layer.{i}.attention.self.pos_query_proj"},
      {"layer.{i}.convolution", "encoder.conv.conv"},
      {"layer.{i}.convolution_norm", "encoder.conv.LayerNorm"},
      {"layer.{i}.output", "encoder.layer.{i}.attention.output.dense"},
      {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"},
      {"layer.{i}.feed_forward_in", "encoder.layer.{i}.intermediate.dense"},
      {"layer.{i}.feed_forward_out", "encoder.layer.{i}.output.dense"},
      {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"},
      {"classifier.dense", "/pooler.dense"},
      {"classifier.output", "/classifier"},
  };
}

std::vector<NamePattern> MobileBertNames() {
  return {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.position", "embeddings.position_embeddings.weight"},
      {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"embeddings.projection", "embeddings.embedding_transformation"},
      {"layer.{i}.bottleneck_in", "encoder.layer.{i}.bottleneck.input.dense"},
      {"layer.{i}.bottleneck_in_norm", "encoder.layer.{i}.bottleneck.input.LayerNorm"},
      {"layer.{i}.bottleneck_attention", "encoder.layer.{i}.bottleneck.attention.dense"},
      {"layer.{i}.bottleneck_attention_norm", "encoder.layer.{i}.bottleneck.attention.LayerNorm"},
      {"layer.{i}.query", "encoder.layer.{i}.attention.self.query"},
      {"layer.{i}.key", "encoder.layer.{i}.attention.self.key"},
      {"layer.{i}.value", "encoder.layer.{i}.attention.self.value"},
      {"layer.{i}.output", "encoder.layer.{i}.attention.output.dense"},
      {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"},
      {"layer.{i}.before.{j}.feed_forward_in", "encoder.layer.{i}.ffn.{j}.intermediate.dense"},
      {"layer.{i}.before.{j}.feed_forward_out", "encoder.layer.{i}.ffn.{j}.output.dense"},
      {"layer.{i}.before.{j}.feed_forward_norm", "encoder.layer.{i}.ffn.{j}.output.LayerNorm"},
      {"layer.{i}.feed_forward_in", "encoder.layer.{i}.intermediate.dense"},
      {"layer.{i}.feed_forward_out", "encoder.layer.{i}.output.dense"},
      {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"},
      {"layer.{i}.bottleneck_out", "encoder.layer.{i}.output.bottleneck.dense"},
      {"layer.{i}.bottleneck_out_norm", "encoder.layer.{i}.output.bottleneck.LayerNorm"},
      {"pooling.dense", "pooler.dense"},
  };
}

std::vector<NamePattern> T5Names() {
  return {
      {"embeddings.word", "shared.weight"},
      {"embeddings.word", "encoder.embed_tokens.weight"},
      {"relative_positions",
       "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
      {"layer.{i}.query", "encoder.block.{i}.layer.0.SelfAttention.q"},
      {"layer.{i}.key", "encoder.block.{i}.layer.0.SelfAttention.k"},
      {"layer.{i}.value", "encoder.block.{i}.layer.0.SelfAttention.v"},
      {"layer.{i}.output", "encoder.block.{i}.layer.0.SelfAttention.o"},
      {"layer.{i}.attention_norm", "encoder.block.{i}.layer.0.layer_norm"},
      {"layer.{i}.feed_forward_gate", "encoder.block.{i}.layer.1.DenseReluDense.wi_0"},
      {"layer.{i}.feed_forward_in", "encoder.block.{i}.layer.1.DenseReluDense.wi"},
      {"layer.{i}.feed_forward_in", "encoder.block.{i}.layer.1.DenseReluDense.wi_1"},
      {"layer.{i}.feed_forward_out", "encoder.block.{i}.layer.1.DenseReluDense.wo"},
      {"layer.{i}.feed_forward_norm", "encoder.block.{i}.layer.1.layer_norm"},
      {"exit_norm", "encoder.final_layer_norm"},
  };
}

Family Electra() {
  Family family = BertFamily();
  family.name = "electra";
  family.model_types = {"electra"};
  family.architectures = {"Electra"};
  family.prefixes = {"electra."};
  family.parts = {"embeddings.", "embeddings_project.", "encoder."};
  family.pooler = "";
  family.keys.embedding_width = {"embedding_size"};
  family.classifier_activation = Activation::kGelu;
  family.names = WithHead(BertNames(), "/classifier.dense", "/classifier.out_proj");
  family.harmless_keys = {"summary_activation", "summary_first_dropout", "summary_last_dropout",
                          "summary_type", "summary_use_proj"};
  family.vocabulary_head_names = ElectraVocabularyHeadNames();
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
      .others = {},
      .classifier_activation = Activation::kRelu,
      .keys = {.hidden_size = {"dim", "hidden_size"},
               .heads = {"n_heads", "num_attention_heads"},
               .layers = {"n_layers", "num_hidden_layers"},
               .feed_forward_width = {"hidden_dim"},
               .activation = {"activation"},
               .norm_epsilon = {}},
      .harmless_keys = {"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds",
                        "tie_weights_"},
      .names = WithHead(DistilBertNames(), "/pre_classifier", "/classifier"),
      .vocabulary_head_names = DistilBertVocabularyHeadNames(),
  };
}

Family Albert() {
  Family family = BertFamily();
  family.name = "albert";
  family.model_types = {"albert"};
  family.architectures = {"Albert"};
  family.prefixes = {"albert."};
  family.keys.layer_groups = {"num_hidden_groups"};
  family.keys.embedding_width = {"embedding_size"};
  family.fixed_keys = {{"inner_group_num", 1}};
  family.harmless_keys = {"down_scale_factor", "gap_size", "net_structure_type",
                          "num_memory_blocks"};
  family.activation = Activation::kGeluTanh;
  family.always_projects_embeddings = true;
  family.names = WithHead(AlbertNames(), "pooler", "/classifier");
  family.vocabulary_head_names = AlbertVocabularyHeadNames();
  return family;
}

// BigBird reads long text with block-sparse attention. Its tensors are those of BERT, except the
// pooler.
Family BigBird() {
  Family family = BertFamily();
  family.name = "big_bird";
  family.model_types = {"big_bird"};
  family.architectures = {"BigBird"};
  family.keys.attention_type = {"attention_type"};
  family.keys.scales_words = {"rescale_embeddings"};
  family.harmless_keys = {"padding", "use_bias"};
  family.biases = Biases::kAsInFile;
  family.activation = Activation::kGeluTanh;
  family.classifier_acts_as_layers = true;
  family.names = WithHead(BertNames(), "/classifier.dense", "/classifier.out_proj");
  for (NamePattern& name : family.names) {
    if (std::string_view(name.canonical) == "pooling.dense") name.in_file = "pooler";
  }
  return family;
}

// Two of the norms have torch's default epsilon in the library, whatever the config says.
Family MobileBert() {
  Family family = BertFamily();
  family.name = "mobilebert";
  family.model_types = {"mobilebert"};
  family.architectures = {"MobileBert"};
  family.prefixes = {"mobilebert."};
  family.others = {
      "embeddings.embedding_transformation."};  // unused if the words are not projected
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
  family.names = WithHead(MobileBertNames(), "pooler.dense", "/classifier");
  family.vocabulary_head_names = {};  // its decoder has two parts
  return family;
}

// The library's code has a table of 32 buckets for distances of up to 128, whatever the config
// says.
Family MpNet() {
  Family family = BertFamily();
  family.name = "mpnet";
  family.model_types = {"mpnet"};
  family.architectures = {"MPNet"};
  family.prefixes = {"mpnet."};
  family.keys.token_types = {};
  family.fixed_keys = {{"relative_attention_num_buckets", 32}};
  family.position_rule = PositionRule::kCountNotPadding;
  family.padding_id = 1;
  family.relative_positions = {RelativePositions::kBuckets, 32, 128};
  family.names = WithHead(MpNetNames(), "/classifier.dense", "/classifier.out_proj");
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
      .biases = Biases::kAsInFile,
      .norm_epsilon = 1e-7f,
      .embedding_norm_is_last = true,
      .fewest_token_types = 0,
      .relative_positions = {.kind = RelativePositions::kDisentangled},
      .names = DebertaNames(),
      .vocabulary_head_names = DebertaVocabularyHeadNames(),
  };
}

Family T5() {
  return {
      .name = "t5",
      .model_types = {"t5", "mt5"},
      .architectures = {"T5", "MT5"},
      .prefixes = {},
      .parts = {"shared.", "encoder."},
      .others = {"decoder.", "lm_head."},
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
      .harmless_keys = {"n_positions", "num_decoder_layers", "output_past",
                        "scale_decoder_outputs"},
      .biases = Biases::kAsInFile,
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
  };
}

}  // namespace

std::vector<Family> TextFamilies() {
  return {BertFamily(), RobertaFamily(), Electra(), DistilBert(), Albert(),
          BigBird(),    MobileBert(),    MpNet(),   DebertaV2(),  T5()};
}

}  // namespace attendant
