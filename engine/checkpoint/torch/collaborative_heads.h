// Collaborative heads as heads of their own: Cordonnier et al. 2020.
#pragma once

#include <memory>

#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The weights of attention layers whose heads share queries and keys, from those that `shared` has:
// of each layer "layer.<i>.query" and "layer.<i>.key", ".weight" [width, E] and perhaps ".bias"
// [width], "layer.<i>.mixing" [H, width], with `has_content_bias` "layer.<i>.content_bias" [H, E],
// and all others as they are. Head h has the shared queries times row h of the mixing; with a
// content bias its key width is one more, for a query of 1 and a key that row h of the bias makes.
// `layer` is as it becomes.
std::unique_ptr<WeightSource> SplitCollaborativeHeads(const LayerShape& layer,
                                                      bool has_content_bias,
                                                      std::unique_ptr<WeightSource> shared);

}  // namespace attendant
