// Collaborative heads (Cordonnier et al. 2020), converted to heads with weights of their own.
#pragma once

#include <memory>

#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// Converts the weights of attention layers in which heads share queries and keys to weights of
// ordinary heads. For each layer i, `shared` has "layer.<i>.query" and "layer.<i>.key", as
// ".weight" [width, E] and perhaps ".bias" [width]; "layer.<i>.mixing" [H, width]; with
// `has_content_bias` also "layer.<i>.content_bias" [H, E]; and all other weights, which are passed
// through. Head h gets the shared queries times row h of the mixing. With a content bias its key
// width is one larger: the additional query element is 1, and row h of the content bias makes the
// additional key element. `model` is the model after the conversion.
std::unique_ptr<WeightSource> SplitCollaborativeHeads(const ModelDescription& model,
                                                      bool has_content_bias,
                                                      std::unique_ptr<WeightSource> shared);

}  // namespace attendant
