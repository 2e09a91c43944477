// The parts of CheckDescription (check_description.h) that have files of their own.
#pragma once

#include "engine/base/rules.h"
#include "engine/model/model_description.h"

namespace attendant {

// Requires that the model supports its heads.
void RequireHeads(const ModelDescription& model, Rules& rules);

// Requires that the layer map names all weight sets, that there are no shapes or one per weight
// set, and that each shape fits into the common one. Does not check each shape by itself.
void RequireLayerShapes(const ModelDescription& model, Rules& rules);

}  // namespace attendant
