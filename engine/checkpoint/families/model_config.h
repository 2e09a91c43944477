// The config.json of a published model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/choices.h"
#include "engine/model/model_description.h"

namespace attendant {

struct ModelConfig {
  const Family* family;               // never null; lives as long as the process
  ModelDescription description = {};  // without the pooling
  PoolingDescription pooler = {};     // the pooler, if the weight files have one
  // The pooling before a classification head, if the architecture scores classes of whole
  // sequences; else empty.
  std::vector<PoolingMode> classifier_modes = {};
  int64_t classifier_padding_id = -1;  // as PoolingDescription::padding_id
  // Of the heads, if the config may state it.
  std::optional<Activation> classifier_activation = {};
  bool has_token_head = false;             // the architecture scores each token
  bool has_vocabulary_head = false;        // the architecture is a masked language model
  std::string head_architecture = {};      // has a head other than over the vocabulary; or empty
  bool is_language_model = false;          // the architecture predicts the next token
  std::vector<std::string> warnings = {};  // for the log
};

// Reads <folder>/config.json and sets the sizes and options by the rules of its family (rule W13 in
// engine/checkpoint/README.md), or of a tower. One message lists all problems. Returns NOT_FOUND if
// there is no such file.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder, Tower tower = Tower::kOnly);

// Likewise for the content of a config.json. Messages call it `path`.
absl::StatusOr<ModelConfig> ReadModelConfig(const Json& file, const std::string& path,
                                            Tower tower = Tower::kOnly);

}  // namespace attendant
