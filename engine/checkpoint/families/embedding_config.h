// The keys of config.json for the embeddings of token ids.
#pragma once

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the embeddings of a family that takes token ids, whose layers are `layer`.
EmbeddingShape ReadEmbeddings(const Family& family, const LayerShape& layer, ConfigReader& config,
                              Problems& problems);

}  // namespace attendant
