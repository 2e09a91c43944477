// Collaborative heads as heads of their own: Cordonnier et al. 2020.
#pragma once

#include <memory>

#include "engine/checkpoint/model_description.h"
#include "engine/checkpoint/weight_source.h"

namespace attendant {

// The weights of an attention layer whose heads share queries and keys, from those that `shared`
// has: "layer.0.query.weight" and "layer.0.key.weight" [width, E] without biases, "layer.0.mixing"
// [H, width], with `has_content_bias` "layer.0.content_bias" [H, E], and all others as they are.
// Head h has the shared queries times row h of the mixing; with a content bias its key width is one
// more, for a query of 1 and a key that row h of the bias makes. `layer` is as it becomes.
std::unique_ptr<WeightSource> SplitCollaborativeHeads(const LayerShape& layer,
                                                      bool has_content_bias,
                                                      std::unique_ptr<WeightSource> shared);

}  // namespace attendant
