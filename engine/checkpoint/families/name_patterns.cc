#include "engine/checkpoint/families/name_patterns.h"

#include "absl/algorithm/container.h"

namespace attendant {

NamePatterns JoinNames(std::initializer_list<NamePatterns> lists) {
  NamePatterns joined;
  for (const NamePatterns& list : lists) {
    std::erase_if(joined, [&](const NamePattern& earlier) {
      return absl::c_any_of(
          list, [&](const NamePattern& own) { return own.canonical == earlier.canonical; });
    });
    joined.insert(joined.end(), list.begin(), list.end());
  }
  return joined;
}

NamePatterns Stacked(const std::vector<std::string>& weights, const std::string& in_file,
                     RowUnit unit) {
  NamePatterns names;
  for (const std::string& weight : weights) {
    names.push_back({weight, in_file, {std::ssize(names), std::ssize(weights)}, unit});
  }
  return names;
}

NamePatterns StackedInputs(const std::string& in_file, RowUnit unit) {
  return Stacked({"layer.{i}.query", "layer.{i}.key", "layer.{i}.value"}, in_file, unit);
}

NamePatterns BertEmbeddingNames() {
  return {{"embeddings.word", "embeddings.word_embeddings.weight"},
          {"embeddings.position", "embeddings.position_embeddings.weight"},
          {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
          {"embeddings.norm", "embeddings.LayerNorm"}};
}

NamePatterns BertNames() {
  return JoinNames({BertEmbeddingNames(),
                    {{"embeddings.projection", "embeddings_project"},
                     {"layer.{i}.query", "encoder.layer.{i}.attention.self.query"},
                     {"layer.{i}.key", "encoder.layer.{i}.attention.self.key"},
                     {"layer.{i}.value", "encoder.layer.{i}.attention.self.value"},
                     {"layer.{i}.output", "encoder.layer.{i}.attention.output.dense"},
                     {"layer.{i}.attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"},
                     {"layer.{i}.feed_forward_in", "encoder.layer.{i}.intermediate.dense"},
                     {"layer.{i}.feed_forward_out", "encoder.layer.{i}.output.dense"},
                     {"layer.{i}.feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"},
                     {"pooling.dense", "pooler.dense"}}});
}

NamePatterns BartLayerNames() {
  return {{"layer.{i}.query", "encoder.layers.{i}.self_attn.q_proj"},
          {"layer.{i}.key", "encoder.layers.{i}.self_attn.k_proj"},
          {"layer.{i}.value", "encoder.layers.{i}.self_attn.v_proj"},
          {"layer.{i}.output", "encoder.layers.{i}.self_attn.out_proj"},
          {"layer.{i}.attention_norm", "encoder.layers.{i}.self_attn_layer_norm"},
          {"layer.{i}.feed_forward_in", "encoder.layers.{i}.fc1"},
          {"layer.{i}.feed_forward_out", "encoder.layers.{i}.fc2"},
          {"layer.{i}.feed_forward_norm", "encoder.layers.{i}.final_layer_norm"},
          {"exit_norm", "encoder.layer_norm"}};
}

NamePatterns ClassifierNames(const std::string& dense, const std::string& output) {
  return {{"classifier.dense", dense}, {"classifier.output", output}};
}

NamePatterns VocabularyHeadNames(const std::string& dense, const std::string& norm,
                                 const std::string& decoder, const std::string& bias) {
  NamePatterns names = {{"vocabulary_head.dense", dense},
                        {"vocabulary_head.dense_norm", norm},
                        {"vocabulary_head.output", decoder}};
  if (!bias.empty()) names.push_back({"vocabulary_head.output.bias", bias});
  names.push_back({"vocabulary_head.output.weight", "embeddings.word_embeddings.weight"});
  return names;
}

NamePatterns BertVocabularyHeadNames() {
  return VocabularyHeadNames("/cls.predictions.transform.dense",
                             "/cls.predictions.transform.LayerNorm", "/cls.predictions.decoder",
                             "/cls.predictions.bias");
}

NamePatterns RobertaVocabularyHeadNames() {
  return VocabularyHeadNames("/lm_head.dense", "/lm_head.layer_norm", "/lm_head.decoder",
                             "/lm_head.bias");
}

}  // namespace attendant
