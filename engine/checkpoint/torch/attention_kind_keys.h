// What attendant.json says of how attention works, beside its projections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// Names of tensors are empty where there is none. With {layer} in a name each layer has a tensor of
// its own, from 0 on; else all layers share it.
struct AttentionKindKeys {
  AttentionKind kind = AttentionKind::kSoftmax;
  std::optional<float> score_scale;
  int64_t window = 0;
  AttentionPattern pattern = {};
  std::string score;                     // of additive attention
  std::string key_mixing, value_mixing;  // of a Linformer
  // Of collaborative heads: factors [H, columns] on queries that all heads share, as they do keys;
  // and what keys say to a head whatever the query, [H, E], or empty: nothing.
  std::string mixing, content_bias;

  bool collaborates() const { return !mixing.empty(); }
  // Columns that each head has beside those that all share.
  int64_t own_columns() const { return content_bias.empty() ? 0 : 1; }
};

// Reads the optional keys attention, with score, or key_mixing and value_mixing; window, with
// window_block, first_global, last_global, block_pairs and global_blocks; mixing, with
// content_bias; score_scale; and puts those that may be there into `keys`.
AttentionKindKeys ReadAttentionKind(ConfigReader& config, Keys& keys);

// The key width of each of `heads` collaborative heads that share the `columns` which `source`
// makes; 1 and a problem if that is too wide.
int64_t CollaborativeWidth(const AttentionKindKeys& read, int64_t heads, int64_t columns,
                           const std::string& source, WeightBinder& binder);

// Columns of queries and of keys that the file has weights for, of all heads together.
int64_t ColumnsInFile(const AttentionKindKeys& read, const LayerShape& layer);

// Adds the kind, its sizes, window and scale to a layer whose heads and widths are there. Without a
// score_scale: 1 / sqrt(width of a head), of collaborative heads that of their share of the
// columns; 1 where there is no dot product or no softmax.
void DescribeAttentionKind(const AttentionKindKeys& read, LayerShape& layer, WeightBinder& binder);

// What the file has of the model's weights: collaborative heads share queries and keys.
std::vector<WeightSpec> ListWeightsInFile(const AttentionKindKeys& read,
                                          const ModelDescription& description);

// Binds the weight if it is one that few kinds of attention have; else false.
bool BindAttentionKind(const AttentionKindKeys& read, const WeightSpec& spec, WeightBinder& binder);

// The model's weights, made of those in the file.
std::unique_ptr<WeightSource> WithAttentionKind(const AttentionKindKeys& read,
                                                const LayerShape& layer,
                                                std::unique_ptr<WeightSource> weights);

}  // namespace attendant
