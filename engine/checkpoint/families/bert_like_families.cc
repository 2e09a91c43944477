// Further families that read text, with tensors that are named as BERT's.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

NamePatterns WithRobertaHead(const NamePatterns& names) {
  return JoinNames(
      {BertNames(), names, ClassifierNames("/classifier.dense", "/classifier.out_proj")});
}

// Files may have the sines and cosines of the rotation, which are computed here.
Family RoFormer() {
  Family family = Like(BertFamily(), "roformer", "RoFormer");
  family.prefixes = {"roformer."};
  family.parts = {"embeddings.", "embeddings_project.", "encoder."};
  family.others = {"encoder.embed_positions."};
  family.pooler = "";
  family.keys.positions = {};
  family.keys.embedding_width = {"embedding_size"};
  family.fixed_keys = {{"rotary_value", false, "values are not rotated"}};
  family.harmless_keys = {"max_position_embeddings"};
  family.classifier_acts_as_layers = true;
  family.relative_positions = {.kind = RelativePositions::kRotary,
                               .rotary = {.pairs = RotaryPairs::kInterleaved}};
  family.rotary_theta = 10000;
  family.names = WithRobertaHead({});
  return family;
}

Family Data2VecText() {
  Family family = Like(RobertaFamily(), "data2vec-text", "Data2VecText");
  family.prefixes = {"data2vec_text."};
  return family;
}

// Tokens are of task type 0, as in the library without task_type_ids.
Family Ernie() {
  Family family = Like(BertFamily(), "ernie", "Ernie");
  family.prefixes = {"ernie."};
  family.others = {"embeddings.task_type_embeddings."};  // unused without use_task_id
  family.keys.has_task_types = {"use_task_id"};
  family.keys.task_types = {"task_type_vocab_size"};
  family.names.push_back({"embeddings.task_type", "embeddings.task_type_embeddings.weight"});
  return family;
}

Family RemBert() {
  Family family = Like(BertFamily(), "rembert", "RemBert");
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
  Family family = Like(BertFamily(), "esm", "Esm");
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

std::vector<Family> BertLikeFamilies() {
  return {RoFormer(), Data2VecText(), Ernie(), RemBert(), Esm()};
}

}  // namespace attendant
