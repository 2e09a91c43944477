// Checkpoints with two towers, and the families of the towers.
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/checkpoint/families/config_parts.h"
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

// The layers of all towers, followed by `others`.
NamePatterns TowerNames(const NamePatterns& others) {
  return JoinNames({BartLayerNames(),
                    {{"layer.{i}.attention_norm", "encoder.layers.{i}.layer_norm1"},
                     {"layer.{i}.feed_forward_in", "encoder.layers.{i}.mlp.fc1"},
                     {"layer.{i}.feed_forward_out", "encoder.layers.{i}.mlp.fc2"},
                     {"layer.{i}.feed_forward_norm", "encoder.layers.{i}.layer_norm2"},
                     {"similarity.scale", "/logit_scale"},
                     {"similarity.bias", "/logit_bias"}},
                    others});
}

// The probe makes the query. The projections are stacked as in torch's attention.
NamePatterns SiglipVisionNames() {
  const auto inputs = [](const std::string& kind) {
    return Stacked({"pooling.query." + kind, "pooling.key." + kind, "pooling.value." + kind},
                   "head.attention.in_proj_" + kind);
  };
  return TowerNames(JoinNames({inputs("weight"),
                               inputs("bias"),
                               {
                                   {"front.projection", "embeddings.patch_embedding"},
                                   {"front.positions", "embeddings.position_embedding.weight"},
                                   {"exit_norm", "post_layernorm"},
                                   {"pooling.probe", "head.probe"},
                                   {"pooling.dense", "head.attention.out_proj"},
                                   {"pooling.block_norm", "head.layernorm"},
                                   {"pooling.block_in", "head.mlp.fc1"},
                                   {"pooling.block_out", "head.mlp.fc2"},
                                   {"classifier.dense", "/classifier"},
                               }}));
}

// `head`: the layer that makes the vector of a text.
NamePatterns TextTowerNames(const char* head) {
  return TowerNames({
      {"embeddings.word", "embeddings.token_embedding.weight"},
      {"embeddings.position", "embeddings.position_embedding.weight"},
      {"exit_norm", "final_layer_norm"},
      {"pooling.dense", head},
  });
}

// The parts that the towers of CLIP and SigLIP share.
Family EitherTower() {
  Family family;
  family.parts = {"embeddings.", "encoder."};
  family.pooler_activation = Activation::kIdentity;
  family.has_every_bias = false;
  family.norm_placement = NormPlacement::kPre;
  family.has_embedding_norm = false;
  return family;
}

Family VisionTower() {
  Family family = EitherTower();
  family.prefixes = {"vision_model."};
  family.parts.push_back("post_layernorm.");
  family.keys.vocabulary = {};
  family.keys.positions = {};
  family.keys.patch_size = {"patch_size"};
  family.patches_are_grid = true;
  return family;
}

Family TextTower() {
  Family family = EitherTower();
  family.prefixes = {"text_model."};
  family.parts.push_back("final_layer_norm.");
  family.pooler_mode = PoolingMode::kLastToken;
  family.texts_take_pooler = true;
  return family;
}

Family OfClip(Family tower) {
  tower.pools_without_layer = true;
  tower.keys.pooler_width = {"projection_dim"};
  tower.norm_epsilon = 1e-5f;
  tower.activation = Activation::kQuickGelu;
  return tower;
}

Family OfSiglip(Family tower) {
  tower.pooler = "head.";
  tower.norm_epsilon = 1e-6f;
  tower.activation = Activation::kGeluTanh;
  return tower;
}

// The library's hidden states lack the last norm, which here all rows have: its pooled vector is
// the normalized class token.
Family ClipVision() {
  Family family = Like(OfClip(VisionTower()), "clip_vision", "CLIPVision");
  family.model_types = {"clip_vision_model"};
  family.parts.push_back("pre_layrnorm.");
  family.pooler = "visual_projection.";
  family.norms_patches = true;
  family.names = TowerNames({
      {"front.projection", "embeddings.patch_embedding"},
      {"front.class", "embeddings.class_embedding"},
      {"front.positions", "embeddings.position_embedding.weight"},
      {"front.norm", "pre_layrnorm"},
      {"exit_norm", "post_layernorm"},
      {"pooling.dense", "/visual_projection"},
  });
  return family;
}

Family ClipText() {
  Family family = Like(OfClip(TextTower()), "clip_text", "CLIPText");
  family.model_types = {"clip_text_model"};
  family.pooler = "text_projection.";
  family.keys.pooler_end = {"eos_token_id"};
  family.is_causal = true;
  family.names = TextTowerNames("/text_projection");
  return family;
}

Family SiglipVision() {
  Family family = Like(OfSiglip(VisionTower()), "siglip_vision", "SiglipVision");
  family.model_types = {"siglip_vision_model"};
  family.pooler_mode = PoolingMode::kAttention;
  family.pooler_has_block = true;
  family.harmless_keys = {"vision_use_head"};  // the files have the head or do not
  family.classifier_modes = {PoolingMode::kMean};
  family.names = SiglipVisionNames();
  return family;
}

// It was trained on texts that are padded, without a mask: the padding counts.
Family SiglipText() {
  Family family = Like(OfSiglip(TextTower()), "siglip_text", "SiglipText");
  family.model_types = {"siglip_text_model"};
  family.pads_texts = true;
  family.padding_id = 1;
  family.keys.pooler_width = {"projection_size"};
  family.names = TextTowerNames("head");
  return family;
}

struct TowerRow {
  const char* model_type;  // of the checkpoint
  Tower tower;
  const char* section;        // of its config
  const char* older_section;  // which replaces it where it is there; or null
  const char* tower_type;     // the tower's own model_type
  const char* defaults;       // of the library, which files leave out
};

constexpr TowerRow kTowers[] = {
    {"clip", Tower::kText, "text_config", "text_config_dict", "clip_text_model",
     R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
         "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77,
         "projection_dim": 512})"},
    {"clip", Tower::kVision, "vision_config", "vision_config_dict", "clip_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "image_size": 224, "patch_size": 32, "projection_dim": 512})"},
    {"siglip", Tower::kText, "text_config", nullptr, "siglip_text_model",
     R"({"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072,
         "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 64})"},
    {"siglip", Tower::kVision, "vision_config", nullptr, "siglip_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "image_size": 224, "patch_size": 16})"},
};

// Returns the section of the row's tower in the config of a checkpoint with two.
Json ReadSection(const TowerRow& row, const Json& config, Problems& problems) {
  const Json defaults = Json::parse(row.defaults);
  Json read = defaults;
  const Json section = config.value(row.section, Json::object());
  if (!section.is_object()) {
    problems.Add(row.section, ": expected an object; got ", Describe(section));
    return read;
  }
  read.update(section);
  if (row.older_section != nullptr) {
    // As in the library, what such a section leaves out is the default.
    const Json older = config.value(row.older_section, Json());
    if (older.is_object()) {
      read.update(defaults);
      read.update(older);
    }
  }
  if (config.contains("projection_dim")) read["projection_dim"] = config["projection_dim"];
  read["model_type"] = row.tower_type;
  read["architectures"] = config.value("architectures", Json());
  return read;
}

std::string NameOf(Tower tower) {
  return tower == Tower::kOnly ? "none" : NameIn(kTowerNames, tower);
}

}  // namespace

std::vector<Family> TowerFamilies() {
  return {ClipVision(), ClipText(), SiglipVision(), SiglipText()};
}

Json ConfigOfTower(const Json& config, Tower tower, Problems& problems) {
  const std::string type =
      config.is_object() && config.contains("model_type") && config["model_type"].is_string()
          ? config["model_type"].get<std::string>()
          : "";
  std::vector<std::string> choices;
  for (const TowerRow& row : kTowers) {
    if (type == row.tower_type && (tower == row.tower || tower == Tower::kOnly)) {
      Json read = Json::parse(row.defaults);
      read.update(config);
      return read;
    }
    if (type == row.model_type && tower == row.tower) return ReadSection(row, config, problems);
    if (type == row.model_type || type == row.tower_type) choices.push_back(NameOf(row.tower));
  }
  if (choices.size() > 1) {
    problems.Add("tower: missing; ", type,
                 " has two towers; set tower=", absl::StrJoin(choices, " or tower="));
  } else if (!choices.empty()) {
    problems.Add("tower: expected ", choices.front(), " (a ", type, " has only this tower); got ",
                 NameOf(tower));
  } else if (tower != Tower::kOnly) {
    problems.Add("tower: not supported (the checkpoint has no towers); got ", NameOf(tower));
  }
  return config;
}

}  // namespace attendant
