// config.json of a published model.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/families/families.h"
#include "engine/model/model_description.h"

namespace attendant {

struct ModelConfig {
  const Family* family;                            // never null, lives forever
  ModelDescription description;                    // but for the pooling
  PoolingDescription pooler;                       // what its files make of the first token, if so
  std::vector<PoolingMode> classifier_modes = {};  // if its architecture scores classes of whole
                                                   // sequences: what the head looks at; else none
};

// Reads <folder>/config.json and fills the axes by the rules of its family. All problems in
// one message. NOT_FOUND: there is none.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder);

}  // namespace attendant
