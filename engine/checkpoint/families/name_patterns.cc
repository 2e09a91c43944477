#include "engine/checkpoint/families/name_patterns.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"

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

NamePatterns LayerNames(const std::string& layer, const std::array<const char*, 8>& names) {
  static const auto& parts = *new std::vector<std::string>(
      absl::StrSplit("query key value output attention_norm feed_forward_in feed_forward_out "
                     "feed_forward_norm",
                     ' '));
  NamePatterns patterns;
  for (size_t i = 0; i < names.size(); ++i) {
    patterns.push_back({"layer.{i}." + parts[i], layer + names[i]});
  }
  return patterns;
}

NamePatterns BertEmbeddingNames() {
  return {{"embeddings.word", "embeddings.word_embeddings.weight"},
          {"embeddings.position", "embeddings.position_embeddings.weight"},
          {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
          {"embeddings.norm", "embeddings.LayerNorm"}};
}

NamePatterns BertNames() {
  return JoinNames(
      {BertEmbeddingNames(),
       LayerNames("encoder.layer.{i}.",
                  {"attention.self.query", "attention.self.key", "attention.self.value",
                   "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
                   "output.dense", "output.LayerNorm"}),
       {{"embeddings.projection", "embeddings_project"}, {"pooling.dense", "pooler.dense"}}});
}

NamePatterns BartLayerNames() {
  return JoinNames(
      {LayerNames("encoder.layers.{i}.",
                  {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
                   "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"}),
       {{"exit_norm", "encoder.layer_norm"}}});
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
