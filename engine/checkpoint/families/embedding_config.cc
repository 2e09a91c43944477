#include <cmath>

#include "engine/checkpoint/families/config_parts.h"

namespace attendant {
namespace {

constexpr int64_t kTokenTypesByDefault = 2;
constexpr int64_t kTaskTypesByDefault = 3;
constexpr int64_t kNarrowestSinusoids = 4;

// Reads the sizes of the tables of positions, and which row the first token of a sequence has.
void ReadPositions(const Family& family, ConfigReader& config, EmbeddingShape& embeddings) {
  const ConfigKeys& keys = family.keys;
  if (!keys.positions.empty() &&
      (keys.has_positions.empty() || config.Boolean(keys.has_positions, true))) {
    embeddings.positions = config.Integer(keys.positions, kPositionRange);
  }
  embeddings.position_rule = family.position_rule;
  embeddings.first_position = family.first_position;
  if (family.position_rule == PositionRule::kCountNotPadding) {
    embeddings.first_position =
        config.Integer(keys.padding_id, {0, kVocabularyRange.highest}, family.padding_id) + 1;
  }
  if (family.counts_from_first_position) embeddings.positions += embeddings.first_position;
  if (embeddings.positions > 0 && embeddings.first_position >= embeddings.positions) {
    config.Refuse(keys.positions.front(), ": expected more positions than the ",
                  embeddings.first_position, " up to pad_token_id; got ", embeddings.positions);
  }
  if (family.sinusoids != Sinusoids::kNone &&
      (embeddings.width < kNarrowestSinusoids || embeddings.width % 2 != 0)) {
    config.Refuse("expected sinusoids of an even width of at least ", kNarrowestSinusoids, "; got ",
                  embeddings.width);
  }
}

}  // namespace

EmbeddingShape ReadEmbeddings(const Family& family, const LayerShape& layer, ConfigReader& config) {
  const ConfigKeys& keys = family.keys;
  EmbeddingShape embeddings;
  embeddings.width = config.Integer(keys.embedding_width, kHiddenSizeRange, layer.hidden_size);
  embeddings.vocabulary = config.Integer(keys.vocabulary, kVocabularyRange);
  ReadPositions(family, config, embeddings);
  if (!keys.token_types.empty()) {
    embeddings.token_types =
        config.Integer(keys.token_types, {family.fewest_token_types, kTokenTypeRange.highest},
                       kTokenTypesByDefault);
  }
  const int64_t tasks = config.Integer(keys.task_types, kTokenTypeRange, kTaskTypesByDefault);
  if (config.Boolean(keys.has_task_types, false)) embeddings.task_types = tasks;
  if (config.Boolean(keys.leaves_out_masks, false)) {
    embeddings.mask_id = config.Integer({"mask_token_id"}, {0, embeddings.vocabulary - 1});
  }
  embeddings.has_norm = config.Boolean(keys.has_embedding_norm, family.has_embedding_norm);
  embeddings.norm_epsilon =
      family.own_norm_epsilon > 0 ? family.own_norm_epsilon : layer.norms.epsilon;
  embeddings.norm_is_last = family.embedding_norm_is_last;
  embeddings.has_neighbours = family.projects_words && config.Boolean({"trigram_input"}, true);
  embeddings.projects_words =
      embeddings.has_neighbours || (family.projects_words && embeddings.width != layer.hidden_size);
  if (config.Boolean(keys.scales_words, family.scales_words)) {
    embeddings.word_scale = std::sqrt(static_cast<float>(layer.hidden_size));
  }
  embeddings.always_projected = family.always_projects_embeddings || embeddings.projects_words;
  return embeddings;
}

}  // namespace attendant
