// The implementation of Encoder. Include it only in this directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/layers/attention_pooling.h"
#include "engine/layers/dense_head.h"
#include "engine/layers/embeddings.h"
#include "engine/layers/encoder.h"
#include "engine/layers/encoder_layer.h"
#include "engine/layers/state/position_tables.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/vocabulary_head.h"
#include "engine/model/model_description.h"

namespace attendant {

class Encoder::Impl {
 public:
  const EncoderLayer& layer(int64_t i) const { return layers[description.weight_set(i)]; }
  // Takes the loader's norms and the bytes that it kept, and adds its products to the base's.
  void Take(WeightLoader& loader);
  // The model must have this head.
  const DenseHead& head(HeadKind kind) const;

  ModelDescription description;
  ComputeMode mode;
  int64_t own_bytes = 0;
  std::vector<ProductUse> product_uses;
  std::vector<ProductPlan> product_plans;
  std::optional<Embeddings> embeddings;
  std::optional<PatchEmbedding> patch_embedding;
  SharedBuffer<float> relative_positions;  // [buckets, H], or empty
  // Shared with overlays.
  std::shared_ptr<SharedPositionTables> position_tables = std::make_shared<SharedPositionTables>();
  std::vector<EncoderLayer> layers;  // one for each weight set
  std::vector<NormParameters> norms;
  std::optional<int> exit_norm;
  std::vector<DenseHead> heads;  // heads[0] is of kind kNone
  std::optional<AttentionPooling> attention_pooling;
  std::optional<VocabularyHead> vocabulary_head;
};

}  // namespace attendant
