// Families that read text.
#include <utility>

#include "engine/checkpoint/families.h"

namespace attendant {
namespace {

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

// Names with those of the two linear layers of a classification head.
std::vector<NamePattern> WithHead(std::vector<NamePattern> names, const char* dense,
                                  const char* output) {
  names.push_back({"classifier.dense", dense});
  names.push_back({"classifier.output", output});
  return names;
}

ConfigKeys BertKeys() { return {.token_types = {"type_vocab_size"}}; }

Family Bert() {
  return {
      .name = "bert",
      .model_types = {"bert"},
      .architectures = {"Bert"},
      .prefixes = {"bert."},
      .parts = {"embeddings.", "encoder."},
      .others = {},
      .pooler = "pooler.",
      .keys = BertKeys(),
      .names = WithHead(BertNames(), "pooler.dense", "/classifier"),
  };
}

Family Roberta() {
  Family family = Bert();
  family.name = "roberta";
  family.model_types = {"roberta", "xlm-roberta", "camembert"};
  family.architectures = {"Roberta", "XLMRoberta", "Camembert"};
  family.prefixes = {"roberta.", "xlm-roberta.", "camembert."};
  family.keys.padding_id = {"pad_token_id"};
  family.position_rule = PositionRule::kCountKept;
  family.padding_id = 1;
  family.names = WithHead(BertNames(), "/classifier.dense", "/classifier.out_proj");
  return family;
}

Family Electra() {
  Family family = Bert();
  family.name = "electra";
  family.model_types = {"electra"};
  family.architectures = {"Electra"};
  family.prefixes = {"electra."};
  family.parts = {"embeddings.", "embeddings_project.", "encoder."};
  family.pooler = "";
  family.keys.embedding_width = {"embedding_size"};
  family.classifier_activation = Activation::kGelu;
  family.names = WithHead(BertNames(), "/classifier.dense", "/classifier.out_proj");
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
      .names = WithHead(DistilBertNames(), "/pre_classifier", "/classifier"),
  };
}

Family Albert() {
  Family family = Bert();
  family.name = "albert";
  family.model_types = {"albert"};
  family.architectures = {"Albert"};
  family.prefixes = {"albert."};
  family.keys.layer_groups = {"num_hidden_groups"};
  family.keys.embedding_width = {"embedding_size"};
  family.fixed_keys = {{"inner_group_num", 1}};
  family.activation = Activation::kGeluTanh;
  family.always_projects_embeddings = true;
  family.names = WithHead(AlbertNames(), "pooler", "/classifier");
  return family;
}

// The table of distances is of 32 buckets and up to 128 in the code of the library, whatever the
// config says.
Family MpNet() {
  Family family = Bert();
  family.name = "mpnet";
  family.model_types = {"mpnet"};
  family.architectures = {"MPNet"};
  family.prefixes = {"mpnet."};
  family.keys.token_types = {};
  family.fixed_keys = {{"relative_attention_num_buckets", 32}};
  family.position_rule = PositionRule::kCountKept;
  family.padding_id = 1;
  family.relative_positions = {RelativePositions::kBuckets, 32, 128};
  family.names = WithHead(MpNetNames(), "/classifier.dense", "/classifier.out_proj");
  return family;
}

Family T5() {
  return {
      .name = "t5",
      .model_types = {"t5", "mt5"},
      .architectures = {"T5", "MT5"},
      .prefixes = {},
      .parts = {"shared.", "encoder."},
      .others = {"decoder.", "lm_head."},
      .keys = {.hidden_size = {"d_model"},
               .heads = {"num_heads"},
               .head_width = {"d_kv"},
               .layers = {"num_layers"},
               .feed_forward_width = {"d_ff"},
               .activation = {"feed_forward_proj"},
               .norm_epsilon = {"layer_norm_epsilon"},
               .positions = {},
               .position_buckets = {"relative_attention_num_buckets"},
               .position_max_distance = {"relative_attention_max_distance"}},
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
  return {Bert(), Roberta(), Electra(), DistilBert(), Albert(), MpNet(), T5()};
}

}  // namespace attendant
