#include "engine/checkpoint/families/tower_config.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

struct TowerRow {
  const char* model_type;  // of the checkpoint
  Tower tower;
  const char* section;     // of its config
  const char* tower_type;  // the tower's own model_type
  const char* defaults;    // of the library, which files leave out
};

constexpr TowerRow kTowers[] = {
    {"clip", Tower::kVision, "vision_config", "clip_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "image_size": 224, "patch_size": 32, "projection_dim": 512})"},
};

}  // namespace

Json ConfigOfTower(const Json& config, Tower tower, Problems& problems) {
  const std::string type =
      config.is_object() && config.contains("model_type") && config["model_type"].is_string()
          ? config["model_type"].get<std::string>()
          : "";
  bool has_towers = false;
  for (const TowerRow& row : kTowers) {
    const bool is_tower = type == row.tower_type;
    has_towers |= type == row.model_type || is_tower;
    if (row.tower != tower && !(is_tower && tower == Tower::kOnly)) continue;
    if (type != row.model_type && !is_tower) continue;
    Json read = Json::parse(row.defaults);
    if (is_tower) {
      read.update(config);
      return read;
    }
    const Json section = config.value(row.section, Json::object());
    if (!section.is_object()) {
      problems.Add(absl::StrCat(row.section, ": expected an object, found ", Describe(section)));
      return read;
    }
    read.update(section);
    if (config.contains("projection_dim")) read["projection_dim"] = config["projection_dim"];
    read["model_type"] = row.tower_type;
    read.erase("architectures");
    return read;
  }
  if (has_towers) {
    problems.Add(absl::StrCat("tower: expected tower=vision, as only this tower of ", type,
                              " is computed here, found ",
                              tower == Tower::kOnly ? "none" : NameIn(kTowerNames, tower)));
  } else if (tower != Tower::kOnly) {
    problems.Add(absl::StrCat("tower: expected none, as the checkpoint has no towers, found ",
                              NameIn(kTowerNames, tower)));
  }
  return config;
}

}  // namespace attendant
