#include "engine/checkpoint/families/vocabulary_head_names.h"

namespace attendant {
namespace {

std::vector<NamePattern> WithWords(std::vector<NamePattern> names) {
  names.push_back({"vocabulary_head.output.weight", "embeddings.word_embeddings.weight"});
  return names;
}

}  // namespace

std::vector<NamePattern> BertVocabularyHeadNames() {
  return WithWords({{"vocabulary_head.dense", "/cls.predictions.transform.dense"},
                    {"vocabulary_head.dense_norm", "/cls.predictions.transform.LayerNorm"},
                    {"vocabulary_head.output", "/cls.predictions.decoder"},
                    {"vocabulary_head.output.bias", "/cls.predictions.bias"}});
}

std::vector<NamePattern> RobertaVocabularyHeadNames() {
  return WithWords({{"vocabulary_head.dense", "/lm_head.dense"},
                    {"vocabulary_head.dense_norm", "/lm_head.layer_norm"},
                    {"vocabulary_head.output", "/lm_head.decoder"},
                    {"vocabulary_head.output.bias", "/lm_head.bias"}});
}

std::vector<NamePattern> ElectraVocabularyHeadNames() {
  return WithWords({{"vocabulary_head.dense", "/generator_predictions.dense"},
                    {"vocabulary_head.dense_norm", "/generator_predictions.LayerNorm"},
                    {"vocabulary_head.output", "/generator_lm_head"}});
}

std::vector<NamePattern> DistilBertVocabularyHeadNames() {
  return WithWords({{"vocabulary_head.dense", "/vocab_transform"},
                    {"vocabulary_head.dense_norm", "/vocab_layer_norm"},
                    {"vocabulary_head.output", "/vocab_projector"}});
}

std::vector<NamePattern> AlbertVocabularyHeadNames() {
  return WithWords({{"vocabulary_head.dense", "/predictions.dense"},
                    {"vocabulary_head.dense_norm", "/predictions.LayerNorm"},
                    {"vocabulary_head.output", "/predictions.decoder"},
                    {"vocabulary_head.output.bias", "/predictions.bias"}});
}

std::vector<NamePattern> DebertaVocabularyHeadNames() {
  std::vector<NamePattern> names = BertVocabularyHeadNames();
  names.push_back({"vocabulary_head.dense", "/lm_predictions.lm_head.dense"});
  names.push_back({"vocabulary_head.dense_norm", "/lm_predictions.lm_head.LayerNorm"});
  names.push_back({"vocabulary_head.output.bias", "/lm_predictions.lm_head.bias"});
  return names;
}

}  // namespace attendant
