#include "engine/model/model_description.h"

#include "absl/algorithm/container.h"

namespace attendant {

void ModelDescription::SplitShapes() {
  if (layer_shapes.empty()) layer_shapes.assign(weight_sets(), layer);
}

void ModelDescription::ShareShapes() {
  const auto is_common = [&](const LayerShape& shape) { return shape == layer; };
  if (absl::c_all_of(layer_shapes, is_common)) layer_shapes.clear();
}

int64_t ModelDescription::weight_sets() const {
  return layer_map.empty() ? layers : *std::max_element(layer_map.begin(), layer_map.end()) + 1;
}

std::vector<DenseHeadShape> ModelDescription::dense_heads() const {
  std::vector<DenseHeadShape> heads;
  const auto add = [&](HeadKind kind, const std::optional<PoolingDescription>& shape) {
    if (shape) heads.push_back({kind, &*shape});
  };
  add(HeadKind::kPooling, pooling);
  add(HeadKind::kClassifier, classifier);
  add(HeadKind::kTokenHead, token_head);
  add(HeadKind::kLexical, lexical_head);
  return heads;
}

}  // namespace attendant
